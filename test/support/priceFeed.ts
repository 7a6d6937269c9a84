import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fetchPriceFileBy } from '../../adapters/prices/fetchPriceFile.js';
import { testOutbound } from './outbound.js';

/** Dollars per token of one model, as LiteLLM lists it. */
export function litellmModel(inputPerMtok: number, outputPerMtok: number, provider = 'openai') {
  return {
    litellm_provider: provider,
    mode: 'chat',
    input_cost_per_token: inputPerMtok / 1e6,
    output_cost_per_token: outputPerMtok / 1e6,
  };
}

/** A price feed on loopback. `answer` decides; `file` is what it answers by default, with an ETag. */
export async function startPriceFeed() {
  const feed = {
    file: {} as object,
    etag: '"1"',
    requests: [] as IncomingMessage['headers'][],
    answer: undefined as ((response: ServerResponse) => void) | undefined,
  };
  const server = createServer((request, response) => {
    feed.requests.push(request.headers);
    if (feed.answer) return void feed.answer(response);
    if (request.headers['if-none-match'] === feed.etag) return void response.writeHead(304).end();
    response.writeHead(200, { 'content-type': 'application/json', etag: feed.etag });
    response.end(JSON.stringify(feed.file));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return Object.assign(feed, {
    host,
    url: `http://${host}/prices.json`,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  });
}

/** The product's way to price lists, to these feeds alone. */
export const fetchFrom = (hosts: readonly string[], totalMs?: number) =>
  fetchPriceFileBy(testOutbound(hosts), totalMs);
