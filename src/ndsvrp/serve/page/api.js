// Requests to the service. The token comes once in the address, behind #, which browsers do not send.

const given = new URLSearchParams(location.hash.slice(1)).get("token");
if (given) {
  sessionStorage.setItem("token", given);
  history.replaceState(null, "", location.pathname + location.search);
}

function headers() {
  const token = sessionStorage.getItem("token");
  return token ? { authorization: `Bearer ${token}` } : {};
}

/** Return the answer to a request; throw an Error with the service's message if it refuses. */
export async function request(path, options = {}) {
  const answer = await fetch(`/api${path}`, { ...options, headers: headers() });
  if (answer.ok) return answer;
  let text = `${answer.status} ${answer.statusText}`;
  try {
    text = (await answer.json()).error ?? text;
  } catch { /* not from the service */ }
  if (answer.status === 401) text = "This service needs a token: open this address with #token=… at its end.";
  const error = new Error(text);
  error.status = answer.status;
  throw error;
}

export async function getJson(path) {
  return (await request(path)).json();
}

/** Save an answer as a file. */
export async function download(path) {
  const answer = await request(path);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await answer.blob());
  link.download = answer.headers.get("x-file-name") ?? "result";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/**
 * Call `handle(kind, data)` for every server-sent event until 'end'. EventSource cannot send a token, so the stream is
 * read here. A lost connection is opened again: the service then repeats the course from its beginning.
 */
export async function follow(path, handle, signal) {
  while (!signal.aborted) {
    try {
      const answer = await request(path, { signal });
      handle("open", null);
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        const parts = (text + value).split("\n\n");
        text = parts.pop();
        for (const part of parts) {
          const kind = part.match(/^event: (.*)$/m)?.[1];
          const data = part.match(/^data: (.*)$/m)?.[1];
          if (kind && data) handle(kind, JSON.parse(data));
          if (kind === "end") return;
        }
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error.status && error.status < 500) throw error;
    }
    if (signal.aborted) return;
    handle("lost", null);
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}
