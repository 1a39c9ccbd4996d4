// Browsers start no workers for pages that are opened from a folder. There the search of the site runs in a hidden frame.

if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.answer = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.loaded = new Promise((resolve) => this.frame.addEventListener("load", resolve));
      this.frame.srcdoc =
        "<script>window.postMessage = (data) => frameElement.answer(data);</script>" + `<script src="${url}"></script>`;
      document.body.append(this.frame);
    }

    async postMessage(data) {
      await this.loaded;
      this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
    }
  };
}
