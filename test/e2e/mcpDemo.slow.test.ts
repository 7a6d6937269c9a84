import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadDemo } from '../../bin/demo/demoLoad.js';
import { createScreen } from '../../bin/terminal/terminal.js';
import { DEMO_SEED, generateDemo } from '../../lab/demo/generateDemo.js';
import { createLogger } from '../../platform/logger.js';
import type { TestApi } from '../support/api.js';
import { callMcp, connectMcp, MCP_WAYS, textOf } from '../support/mcpClient.js';
import { yesterday } from '../support/plantedFaults.js';
import { startWorkingApi } from '../support/workingApi.js';

let api: TestApi;

beforeAll(async () => {
  api = await startWorkingApi({ readsInvoices: true });
  const screen = createScreen(false, createLogger({ name: 'demo', level: 'silent' }));
  const demo = generateDemo({ seed: DEMO_SEED, endDay: yesterday });
  await loadDemo({ base: api.baseUrl, key: api.adminKey }, demo, screen);
}, 400_000);
afterAll(() => api?.close());

/** First and last day of the month before this one. */
function lastMonth(): { from: string; to: string } {
  const now = new Date();
  const day = (offset: number, date: number) =>
    new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + offset, date)).toISOString().slice(0, 10);
  return { from: day(-1, 1), to: day(0, 0) };
}

describe.each(MCP_WAYS)('an assistant over %s', (way) => {
  it('gets last month’s overcharges of the demo as the API has them', { timeout: 60_000 }, async () => {
    const client = await connectMcp(way, api.baseUrl, api.adminKey);
    const given = { direction: 'overcharge', ...lastMonth() };
    const answer = await callMcp(client, 'list_findings', given);
    const { body } = await api.get(`/api/v1/financial/findings?${new URLSearchParams(given)}`);
    expect(body.count).toBeGreaterThan(3);
    expect(answer.structuredContent).toEqual(body);
    const [first] = body.findings;
    const finding = await callMcp(client, 'get_finding', { id: first.id });
    expect(finding.structuredContent).toEqual((await api.get(`/api/v1/financial/findings/${first.id}`)).body);
    const period = given.from.slice(0, 7);
    const statement = await callMcp(client, 'get_statement', { period });
    const asked = await api.get(`/api/v1/reconciliation/statement?period=${period}`);
    // The time of the answer is its only difference.
    expect({ ...statement.structuredContent, generated_at: asked.body.generated_at }).toEqual(asked.body);
    expect((await callMcp(client, 'list_claims')).structuredContent).toEqual(
      (await api.get('/api/v1/claims')).body,
    );
    await client.close();
  });

  it('without the scope gets the reason, and with another organization’s key finds nothing', {
    timeout: 60_000,
  }, async () => {
    const narrow = await connectMcp(
      way,
      api.baseUrl,
      await api.addKey(api.orgId, 'auditor', { scopes: ['usage:read'] }),
    );
    expect(textOf(await callMcp(narrow, 'list_findings'))).toMatch(
      /^forbidden: the key lacks the scope financial:read/,
    );
    await narrow.close();
    const { body } = await api.get('/api/v1/financial/findings?limit=1');
    const stranger = await connectMcp(way, api.baseUrl, (await api.addOrganization('Stranger')).adminKey);
    expect((await callMcp(stranger, 'list_findings', lastMonth())).structuredContent?.count).toBe(0);
    expect(textOf(await callMcp(stranger, 'get_finding', { id: body.findings[0].id }))).toMatch(/^not_found/);
    await stranger.close();
  });
});
