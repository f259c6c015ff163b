# A small image with the static binary alone:
#   docker build -t reqtop .
#   docker run --rm -it -p 4317:4317 -p 4318:4318 reqtop
# Inside a container loopback is nobody's: it listens on all its addresses, and `-p 127.0.0.1:4317:4317` keeps others out.
FROM rust:1-alpine AS build
RUN apk add --no-cache musl-dev
WORKDIR /src
COPY Cargo.toml Cargo.lock build.rs ./
COPY src src
COPY themes themes
# Cargo.toml names it.
COPY tests/bench tests/bench
# The commit, where git's files are not sent along: --build-arg REQTOP_COMMIT=$(git rev-parse HEAD)
ARG REQTOP_COMMIT=
RUN cargo build --locked --release --bin reqtop

FROM scratch
COPY --from=build /src/target/release/reqtop /reqtop
COPY LICENSE /LICENSE
ENV TERM=xterm-256color REQTOP_GRPC=0.0.0.0:4317 REQTOP_HTTP=0.0.0.0:4318
EXPOSE 4317 4318
USER 65534:65534
ENTRYPOINT ["/reqtop"]
