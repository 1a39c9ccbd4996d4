# The command and the service on a CPU. Untested: it was written where no Docker engine runs.
#
#   docker build -t ndsvrp .
#   docker run --rm -v "$PWD:/data" ndsvrp solve a.vrp --time 30 --out a.sol
#   docker run --rm -p 8765:8765 -e NDS_TOKEN=… -v jobs:/data ndsvrp serve --host 0.0.0.0 --database /data/jobs.sqlite

FROM python:3.11-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
RUN PIP_CONSTRAINT=/source/constraints.txt pip wheel --no-cache-dir --no-deps -w /wheels .

FROM python:3.11-slim
COPY --from=build /wheels /wheels
COPY constraints.txt /wheels/
RUN pip install --no-cache-dir -c /wheels/constraints.txt "$(ls /wheels/*.whl)[serve]" && rm -r /wheels
RUN useradd --create-home nds && mkdir /data && chown nds /data
USER nds
WORKDIR /data
ENTRYPOINT ["nds"]
CMD ["--help"]
