import { loadImage } from '@napi-rs/canvas';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newUuid } from '../../../domain/ids.js';
import { LOGO_BYTES_MAX, logoKey } from '../../../domain/reports/branding.js';
import { removeReplacedLogos } from '../../../usecases/reports/removeReplacedLogos.js';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { testBlobs } from '../../support/blobs.js';
import { send } from '../support/requests.js';

const BRANDING = '/api/v1/reports/branding';
// biome-ignore lint/suspicious/noExplicitAny: the API checks its answers against their schemas; tests read what they need
type Json = any;

const svg = (colour: string) =>
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 4 2"><rect width="4" height="2" fill="${colour}"/></svg>`;

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
}, 300_000);
afterAll(() => api?.close());

async function post(
  org: Pick<TestOrganization, 'adminKey'>,
  fields: Record<string, string | Buffer>,
  headers: Record<string, string> = {},
): Promise<{ status: number; body: Json }> {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields))
    if (typeof value === 'string') form.append(name, value);
    else form.append(name, new Blob([new Uint8Array(value)]), 'logo.bin');
  const response = await fetch(api.baseUrl + BRANDING, {
    method: 'POST',
    headers: { authorization: `Bearer ${org.adminKey}`, ...headers },
    body: form,
  });
  return { status: response.status, body: await response.json() };
}

const get = async (org: TestOrganization): Promise<Json> => (await api.get(BRANDING, org.adminKey)).body;

async function logosOf({ orgId }: TestOrganization): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of testBlobs().stream(`logos/${orgId}/`)) keys.push(key);
  return keys;
}

describe('branding', () => {
  it('has the defaults of the organization until something is set', async () => {
    const org = await api.addOrganization('Northwind');
    expect(await get(org)).toEqual({
      logo_url: '',
      brand_color: '#1F4FD8',
      org_name: 'Northwind',
      footer_text: 'Northwind · trueup.test',
    });
    expect((await api.get(`${BRANDING}/logo`, org.adminKey)).body).toMatchObject({
      status: 404,
      code: 'not_found',
    });
  });

  it('changes the fields that are sent and no others; an empty one takes its default', async () => {
    const org = await api.addOrganization('Northwind');
    const first = await post(org, { brand_color: '#a1c', org_name: ' Northwind Traders ' });
    expect(first).toEqual({
      status: 200,
      body: {
        logo_url: '',
        brand_color: '#AA11CC',
        org_name: 'Northwind Traders',
        footer_text: 'Northwind Traders · trueup.test',
      },
    });
    expect((await post(org, { footer_text: 'Confidential' })).body).toEqual({
      ...first.body,
      footer_text: 'Confidential',
    });
    expect((await post(org, {})).body).toEqual(await get(org));
    expect((await post(org, { brand_color: '', org_name: '', footer_text: '' })).body).toMatchObject({
      brand_color: '#1F4FD8',
      org_name: 'Northwind',
    });
  });

  it('draws a logo again, serves it as PNG under an address of its own, and removes the former file', async () => {
    const org = await api.addOrganization();
    const first = await post(org, { logo: Buffer.from(svg('#ff0000')) });
    expect(first.body.logo_url).toMatch(/^\/api\/v1\/reports\/branding\/logo\?v=[0-9a-f]{16}$/);
    const shown = await send(api, { path: first.body.logo_url, key: org.adminKey });
    expect([shown.status, shown.headers['content-type']]).toEqual([200, 'image/png']);
    const image = await loadImage(shown.bytes);
    expect([image.width, image.height]).toEqual([1024, 512]);
    const second = await post(org, { logo: Buffer.from(svg('#00ff00')), org_name: 'Acme' });
    expect(second.body.logo_url).not.toBe(first.body.logo_url);
    expect(await logosOf(org)).toHaveLength(1);
    expect((await post(org, { brand_color: '#123456' })).body.logo_url).toBe(second.body.logo_url);
    expect((await post(org, { logo: Buffer.alloc(0) })).body.logo_url).toBe(second.body.logo_url);
    expect((await post(org, { logo: '' })).body.logo_url).toBe('');
    expect(await logosOf(org)).toEqual([]);
  });

  it('records what was changed, by whom, and nothing where nothing was', async () => {
    const org = await api.addOrganization();
    await post(org, { brand_color: '#abc', logo: Buffer.from(svg('#ff0000')) });
    await post(org, { brand_color: '#AABBCC' });
    const { records } = (await api.get('/api/v1/audit-log?action=branding.changed', org.adminKey)).body;
    expect(records).toMatchObject([
      {
        actor: { kind: 'key' },
        subject: { type: 'organization' },
        details: {
          fields: ['brand_color', 'logo'],
          old_brand_color: null,
          new_brand_color: '#AABBCC',
          old_logo_sha256: null,
          new_logo_sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
        },
      },
    ]);
  });

  it('answers the same request sent again as the first, and stores one logo', async () => {
    const org = await api.addOrganization();
    const key = { 'idempotency-key': 'the-same-logo' };
    const logo = Buffer.from(svg('#0000ff'));
    const first = await post(org, { logo }, key);
    expect(await post(org, { logo }, key)).toEqual(first);
    expect(await logosOf(org)).toHaveLength(1);
  });

  it.each([
    [{ brand_color: 'red' }, 400, 'invalid_body'],
    [{ brand_color: '#12345' }, 400, 'invalid_body'],
    [{ brand_color: '#1234567' }, 400, 'invalid_body'],
    [{ org_name: 'x'.repeat(121) }, 400, 'invalid_body'],
    [{ org_name: 'a\nb' }, 400, 'invalid_body'],
    [{ footer_text: 'x'.repeat(301) }, 400, 'invalid_body'],
    [{ other: 'x' }, 400, 'invalid_body'],
    [{ logo: 'https://example.com/logo.png' }, 400, 'invalid_body'],
    [{ file: Buffer.from(svg('red')) }, 400, 'invalid_multipart'],
    [{ logo: Buffer.from('GIF89a') }, 415, 'unsupported_media_type'],
    [{ logo: Buffer.from('<svg onload="x"/>') }, 400, 'invalid_logo'],
    [{ logo: Buffer.alloc(LOGO_BYTES_MAX + 1, 0x20) }, 413, 'payload_too_large'],
  ])('refuses a bad form, case %$', async (fields, status, code) => {
    const org = await api.addOrganization();
    const before = await get(org);
    const answer = await post(org, fields as Record<string, string | Buffer>);
    expect([answer.status, answer.body.code], JSON.stringify(answer.body)).toEqual([status, code]);
    expect(await get(org)).toEqual(before);
    expect(await logosOf(org)).toEqual([]);
  });

  it('takes a form alone', async () => {
    const { status } = await api.post(BRANDING, { brand_color: '#123456' });
    expect(status).toBe(415);
  });

  it('loses files that no organization shows once they are a day old, and no others', async () => {
    const org = await api.addOrganization();
    await post(org, { logo: Buffer.from(svg('#ff00ff')) });
    const shown = await logosOf(org);
    const now = BigInt(Date.now()) * 1_000n;
    const put = async (id: string) => {
      const bytes = (async function* () {
        yield Buffer.from('x');
      })();
      await testBlobs().put(logoKey(org.orgId, id), bytes, { bytesMax: 10 });
      return logoKey(org.orgId, id);
    };
    await put(newUuid(now - 2n * 86_400_000_000n));
    const young = await put(newUuid(now));
    let removed = 0;
    const work = {
      database: api.database.database,
      nowMicros: now,
      report: async ({ rows }: { rows: number }) => {
        removed += rows;
      },
    };
    await removeReplacedLogos(work, testBlobs());
    expect(removed).toBe(1);
    expect(await logosOf(org)).toEqual([...shown, young].sort());
  });
});
