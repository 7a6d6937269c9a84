import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApi, type TestApi } from '../../support/api.js';

let api: TestApi;

beforeAll(async () => {
  api = await startTestApi({ allowedHosts: ['Costs.example.com', 'trueup'] });
});
afterAll(() => api.close());

/** Status and body of a request with these header lines. */
function ask(...head: string[]): Promise<{ status: number; text: string }> {
  const { hostname, port } = new URL(api.baseUrl);
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = connect(Number(port), hostname);
    socket.on('data', (chunk) => (text += chunk.toString('latin1')));
    socket.on('error', reject);
    socket.on('close', () => resolve({ status: Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1]), text }));
    socket.write([...head, 'Connection: close', '', ''].join('\r\n'));
  });
}

const PRICES = 'GET /api/v1/pricing/table HTTP/1.1';

describe('the Host header', () => {
  it.each([
    'localhost',
    'LOCALHOST:3000',
    'localhost.',
    'trueup.test',
    'trueup.test:8443',
    'costs.example.com',
    'COSTS.example.com.:443',
    'trueup:3000',
    '127.0.0.1:3000',
    '10.1.2.3',
    '[::1]:3000',
    '[2001:db8::1]',
  ])('%s is an address of the installation', async (host) => {
    expect((await ask(PRICES, `Host: ${host}`)).status).toBe(200);
  });

  it.each([
    'evil.example',
    'evil.example:3000',
    'localhost.evil.example',
    'xlocalhost',
    'costs.example.com.evil.example',
    '127.0.0.1.evil.example',
    '[evil]',
    'localhost:x',
    'a b',
  ])('%s is refused with the setting that would allow it', async (host) => {
    const { status, text } = await ask(PRICES, `Host: ${host}`);
    expect(status).toBe(421);
    expect(text).toContain('application/problem+json');
    expect(text).toContain('"code":"host_not_allowed"');
    expect(text).toMatch(/ALLOWED_HOSTS/);
  });

  it('is refused when it appears twice, whatever the two name', async () => {
    const { status } = await ask(PRICES, 'Host: localhost', 'Host: localhost');
    expect(status).toBe(421);
  });

  it('is not checked for /healthz, which orchestrators request under any name', async () => {
    expect((await ask('GET /healthz HTTP/1.1', 'Host: evil.example')).status).toBe(200);
    expect((await ask('GET /readyz HTTP/1.1', 'Host: evil.example')).status).toBe(421);
    expect((await ask('GET /metrics HTTP/1.1', 'Host: evil.example')).status).toBe(421);
  });

  it('may be absent in HTTP/1.0, which no browser sends', async () => {
    expect((await ask('GET /api/v1/pricing/table HTTP/1.0')).status).toBe(200);
  });
});
