import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { PROJECT_ROOT } from '../../platform/projectRoot.js';
import { startTestApi, type TestApi } from '../support/api.js';

let api: TestApi;

const BROWSER = { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };

function open(path: string, headers: Record<string, string> = BROWSER): Promise<Response> {
  return fetch(`${api.baseUrl}${path}`, { headers });
}

beforeAll(async () => {
  if (!existsSync(join(PROJECT_ROOT, 'dist-web/index.html')))
    throw new Error('the dashboard is not built: run the suite by npm test');
  api = await startTestApi();
});

afterAll(() => api.close());

it('answers a browser with the page of the dashboard at every address of a screen', async () => {
  for (const path of ['/', '/claims', '/claims/clm_1?tab=timeline']) {
    const answer = await open(path);
    expect(answer.status, path).toBe(200);
    expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(answer.headers.get('cache-control')).toBe('no-store');
    expect(await answer.text()).toContain('<div id="root">');
  }
});

it('answers a program that asks for no page with a problem, as before', async () => {
  const answer = await open('/claims', { Accept: '*/*' });
  expect(answer.status).toBe(404);
  expect((await answer.json()) as object).toMatchObject({ code: 'route_not_found' });
});

it('answers an unknown address of the API with a problem, to browsers too', async () => {
  for (const path of ['/api/v1/nothing', '/docs/nothing', '/assets/nothing.js'])
    expect((await open(path)).status, path).toBe(404);
});

it('sends a strict content security policy with a fresh nonce, and forbids frames', async () => {
  const [first, second] = [await open('/'), await open('/')];
  const policy = first.headers.get('content-security-policy') ?? '';
  expect(policy).toContain("default-src 'none'");
  expect(policy).toContain("script-src 'self';");
  expect(policy).toContain("frame-ancestors 'none'");
  expect(policy).not.toContain('unsafe');
  expect(second.headers.get('content-security-policy')).not.toBe(policy);
  const nonce = /'nonce-([^']+)'/.exec(policy)?.[1] ?? '';
  expect(nonce.length).toBeGreaterThan(20);
  expect(await first.text()).toContain(`nonce="${nonce}"`);
});

it('serves hashed files for a year, compressed, and the others with an ETag', async () => {
  const page = await (await open('/')).text();
  const script = /src="(\/assets\/[^"]+\.js)"/.exec(page)?.[1] ?? '';
  const file = await open(script, { 'Accept-Encoding': 'gzip' });
  expect(file.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
  expect(file.headers.get('content-encoding')).toBe('gzip');
  expect(file.headers.get('x-content-type-options')).toBe('nosniff');
  const small = await open(script, { 'Accept-Encoding': 'gzip, br' });
  expect(small.headers.get('content-encoding')).toBe('br');
  expect(small.headers.get('vary')).toBe('Accept-Encoding');
  expect(await small.text()).toBe(await file.text());
  const theme = await open('/theme.js');
  expect(theme.headers.get('cache-control')).toBe('no-cache');
  const again = await open('/theme.js', { 'If-None-Match': theme.headers.get('etag') ?? '' });
  expect(again.status).toBe(304);
});

it('reads no file outside the build', async () => {
  for (const path of ['/assets/..%2Findex.html', '/assets/%2e%2e/index.html', '/assets/../../package.json'])
    expect((await open(path, { Accept: '*/*' })).status, path).toBe(404);
});
