"""The service `nds serve`: searches as jobs over HTTP, with a page that shows them live; also `nds solve --watch`.

Code belongs here if it knows jobs, processes of jobs, HTTP, or the page. It needs the extra `serve`: FastAPI and
uvicorn. Only `config` can be imported without them.
"""
