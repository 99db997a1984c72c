# A machine on which everything builds and all tests run, for CI and for the devcontainer. A GPU is
# not needed; with the NVIDIA Container Toolkit, `docker run --gpus all` brings them in.
FROM debian:12
COPY lab /tmp/symm/lab
COPY tools/lab /tmp/symm/tools/lab
ENV XDG_CACHE_HOME=/opt/cache
RUN /tmp/symm/lab setup && apt-get install -y --no-install-recommends clangd gdb ccache && \
    rm -rf /tmp/symm /var/lib/apt/lists/*
# Git refuses a working tree of another user's, which a mounted one is.
RUN git config --system --add safe.directory '*'
