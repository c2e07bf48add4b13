# The server's image. Build it from the repository's root: docker build -f deploy/server.Dockerfile .
FROM python:3.12-slim AS build
WORKDIR /source
COPY locks/server.txt locks/
COPY shared shared
COPY server server
COPY migrations migrations
COPY docs docs
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PATH=/opt/trainmark/bin:$PATH
RUN python -m venv /opt/trainmark \
 && pip install --require-hashes -r locks/server.txt \
 && pip install --no-deps ./shared ./server

FROM python:3.12-slim
# Pictures of results and comparisons are drawn with a font of the system. Its version does not
# matter, and Debian keeps only the newest.
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends fonts-dejavu-core \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --uid 10001 --home-dir /nonexistent trainmark \
 && install -d -o trainmark -m 0700 /keys /dumps /backups
COPY --from=build /opt/trainmark /opt/trainmark
COPY --chmod=0755 deploy/daily.sh /usr/local/bin/daily.sh
ENV PATH=/opt/trainmark/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 10001
EXPOSE 8000
# Of `serve`; docker-compose.yml turns the check off for other commands.
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s \
  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/readyz', timeout=4)"]
ENTRYPOINT ["bench-server"]
CMD ["serve"]
