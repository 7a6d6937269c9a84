import { once } from 'node:events';
import type { Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import { createBodyServer } from './bodyServer.js';

let server: Server;
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

it('a request that its client ends before its body is whole has no answer and fails nothing else', async () => {
  const bodies: string[] = [];
  server = createBodyServer((_request, response, body) => {
    bodies.push(body.toString('utf8'));
    response.end('read');
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const client = connect(port, '127.0.0.1');
  client.write('POST / HTTP/1.1\r\nhost: fake\r\ncontent-length: 100\r\n\r\nhalf of it');
  const [request] = await once(server, 'request');
  const ended = new Promise((resolve) => request.on('close', resolve));
  client.destroy();
  await ended;
  await nextTurn();
  const whole = await fetch(`http://127.0.0.1:${port}`, { method: 'POST', body: 'all of it' });
  expect([await whole.text(), bodies]).toEqual(['read', ['all of it']]);
});
