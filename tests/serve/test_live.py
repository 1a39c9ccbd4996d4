"""The events of a search, as its followers read them."""

import asyncio

from ndsvrp.serve.live import Live


def test_news_between_two_events_come_before_the_end():
    """A follower that reads slowly still gets the last incumbent: the search ends while it reads the first."""

    async def follow() -> list[bytes]:
        live = Live()
        live.points, live.incumbent, live.progress = [(0.1, 1, 50.0)], b"first", b"{}"
        kinds = []
        async for event in live.follow():
            kinds.append(event)
            if event.startswith(b"event: incumbent") and not live.ended:
                live.points.append((0.2, 2, 40.0))
                live.incumbent, live.job, live.ended = b"second", b"done", True
                live.changed.send()
        return kinds

    events = [event.decode().split("\n")[:2] for event in asyncio.run(follow())]
    assert [(kind.removeprefix("event: "), data.removeprefix("data: ")) for kind, data in events] == [
        ("points", "[[0.1, 1, 50.0]]"), ("incumbent", "first"), ("progress", "{}"),
        ("points", "[[0.2, 2, 40.0]]"), ("incumbent", "second"), ("end", "done"),
    ]  # fmt: skip
