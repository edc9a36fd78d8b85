# fogline in a container: the command line and the studio, as a user without rights, with a root that can be read only.
#
#   docker build -t fogline .
#   docker run --rm --read-only -v "$PWD/data:/data:ro" -v fogline:/state fogline check /data/visits.csv
#   docker run --rm --read-only --cap-drop ALL --security-opt no-new-privileges --tmpfs /tmp \
#     -p 127.0.0.1:8765:8765 -v "$PWD/data:/data:ro" -v fogline:/state \
#     fogline studio /data --store /state/studio --budget 3 --host 0.0.0.0 --allow-host localhost:8765
#
# The tokens are in what the container prints. The port is published on this machine alone; to let others in, put a
# server in front of it that speaks HTTPS, and add --https.

FROM python:3.13-slim AS build
WORKDIR /build
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN python -m venv /opt/fogline \
    && /opt/fogline/bin/python -m pip install --no-cache-dir --disable-pip-version-check '.[cli,studio]'

FROM python:3.13-slim
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /state --shell /usr/sbin/nologin fogline \
    && mkdir -p /data /state \
    && chown fogline:fogline /state
COPY --from=build /opt/fogline /opt/fogline
ENV PATH=/opt/fogline/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HOME=/state \
    XDG_STATE_HOME=/state/marks \
    OPENBLAS_NUM_THREADS=1
USER 10001:10001
WORKDIR /state
VOLUME ["/state"]
EXPOSE 8765
ENTRYPOINT ["fogline"]
CMD ["--help"]
