import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { listAlerts, putPolicy } from '../support/policies.js';
import { anEvent, ingest, send } from '../support/requests.js';

const PATTERNS = '/api/v1/enforcement/patterns';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(async () => {
  await api?.close();
});

const poll = (org: TestOrganization, headers: Record<string, string> = {}, key = org.ingestKey) =>
  send(api, { path: PATTERNS, key, headers });

interface Served {
  version: string;
  patterns: { index: number; id: string }[];
}

/** An organization with these banned patterns, and what its wrappers know of them. */
async function organizationWith(regexes: string[]): Promise<{ org: TestOrganization; served: Served }> {
  const org = await api.addOrganization();
  await putPolicy(api, org, 'banned_patterns', { regexes });
  return { org, served: (await poll(org)).body };
}

/** A wrapper's verdict that the pattern with this index matches; null: none does. */
const verdictOf = ({ version, patterns }: Served, index: number | null, more: object = {}) => ({
  version,
  pattern_index: index,
  ...(index === null ? {} : { pattern_id: patterns.find((one) => one.index === index)?.id, match_offset: 4 }),
  complete: true,
  ...more,
});

const sendVerdict = (org: TestOrganization, policy_verdict: unknown, more: object = {}) =>
  ingest(api, [anEvent({ _service: { policy_verdict }, ...more })], org.ingestKey);

const alertsOf = async (org: TestOrganization) =>
  (await listAlerts(api, org.adminKey)).map(({ policy_type, severity, details }) => ({
    policy_type,
    severity,
    details,
  }));
const alertOf = (pattern_index: number, match_offset = 4) => ({
  policy_type: 'banned_patterns',
  severity: 'high',
  details: { pattern_index, match_offset },
});

/** Counts of calls that were not judged, by reason. */
async function unjudged(reason: string): Promise<number> {
  const metrics = (await api.get('/metrics')).body as string;
  const line = `trueup_policy_unjudged_total\\{policy_type="banned_patterns",reason="${reason}"\\} (\\d+)`;
  return Number(new RegExp(line).exec(metrics)?.[1] ?? 0);
}

describe('the patterns for wrappers', () => {
  it('are served without their text, by entity tag, to keys that send calls alone', async () => {
    const { org, served } = await organizationWith(['project-falcon', '(?=x)', 'y']);
    expect(served).toMatchObject({
      version: expect.stringMatching(/^[0-9a-f]{32}$/),
      poll_seconds: 60,
      patterns: [{ index: 0 }, { index: 2 }],
      not_evaluated: [],
      automata: [{ next: expect.any(Array) }],
    });
    expect(JSON.stringify(served)).not.toContain('falcon');
    const again = await poll(org, { 'if-none-match': `"${served.version}"` });
    expect(again).toMatchObject({ status: 304, headers: { etag: `"${served.version}"` } });
    await putPolicy(api, org, 'banned_patterns', { regexes: ['project-eagle'] });
    expect((await poll(org, { 'if-none-match': `"${served.version}"` })).status).toBe(200);
  });

  it('are none without an enabled policy', async () => {
    const org = await api.addOrganization();
    const before = await poll(org);
    expect(before.body).toMatchObject({ patterns: [], automata: [], not_evaluated: [] });
    await putPolicy(api, org, 'banned_patterns', { regexes: ['x'] }, false);
    expect((await poll(org)).body).toEqual(before.body);
  });

  it('without those that need too large a table, which the policy names', async () => {
    const { org, served } = await organizationWith(['x', '(a|b){15}a(a|b)*c']);
    expect(served).toMatchObject({ patterns: [{ index: 0 }], not_evaluated: [1] });
    const { body } = await api.get('/api/v1/policies', org.adminKey);
    expect(body.policies[0].wrapper_warnings).toEqual([
      { path: 'config.regexes[1]', reason: expect.stringContaining('capturePayloads') },
    ]);
    expect(body.policies[0]).not.toHaveProperty('warnings');
  });
});

describe("a wrapper's verdict", () => {
  it('makes the alert that the prompt would have made, once for the call', async () => {
    const { org, served } = await organizationWith(['secret', 'falcon']);
    const more = { request_id: 'one call', timestamp: new Date().toISOString() };
    await sendVerdict(org, verdictOf(served, 1), more);
    await sendVerdict(org, verdictOf(served, 1), more);
    expect(await alertsOf(org)).toEqual([alertOf(1)]);
  });

  it('makes none where no pattern matches', async () => {
    const { org, served } = await organizationWith(['secret']);
    const before = await unjudged('prompts_unknown');
    await sendVerdict(org, verdictOf(served, null));
    expect(await alertsOf(org)).toEqual([]);
    expect(await unjudged('prompts_unknown')).toBe(before);
  });

  it('does not count where the prompt itself is here', async () => {
    const { org, served } = await organizationWith(['secret', 'falcon']);
    await sendVerdict(org, verdictOf(served, 0), { payload: { prompt: 'harmless' } });
    await sendVerdict(org, verdictOf(served, 0), { payload: { prompt: 'a falcon' } });
    expect(await alertsOf(org)).toEqual([alertOf(1, 2)]);
  });

  it('holds for a call that a rule has blocked', async () => {
    const { org, served } = await organizationWith(['secret']);
    await sendVerdict(org, verdictOf(served, 0), { status: 'blocked', cost_usd: undefined });
    expect(await alertsOf(org)).toEqual([alertOf(0)]);
  });

  it('of an older list counts by its pattern, if that is still banned, with the present index', async () => {
    const { org, served } = await organizationWith(['secret', 'falcon']);
    await putPolicy(api, org, 'banned_patterns', { regexes: ['new', 'more', 'secret'] });
    const before = await unjudged('verdict_outdated');
    await sendVerdict(org, verdictOf(served, 0));
    expect(await alertsOf(org)).toEqual([alertOf(2)]);
    expect(await unjudged('verdict_outdated')).toBe(before);
    // A pattern that is no longer banned makes no alert; the new ones were not searched for.
    await sendVerdict(org, verdictOf(served, 1));
    await sendVerdict(org, verdictOf(served, null));
    expect(await alertsOf(org)).toHaveLength(1);
    expect(await unjudged('verdict_outdated')).toBe(before + 2);
  });

  it('is counted where it is incomplete, and a call with neither prompts nor verdict is too', async () => {
    const { org, served } = await organizationWith(['secret']);
    const incomplete = await unjudged('verdict_incomplete');
    const unknown = await unjudged('prompts_unknown');
    await sendVerdict(org, verdictOf(served, null, { complete: false }));
    await sendVerdict(org, verdictOf(served, 0, { complete: false }));
    await ingest(api, [anEvent({ payload: undefined })], org.ingestKey);
    expect(await alertsOf(org)).toEqual([alertOf(0)]);
    expect(await unjudged('verdict_incomplete')).toBe(incomplete + 1);
    expect(await unjudged('prompts_unknown')).toBe(unknown + 1);
  });

  it.each<[string, unknown]>([
    ['a text', 'secret'],
    ['no version', { version: undefined }],
    ['no offset', { match_offset: undefined }],
    ['an offset behind the searched part', { match_offset: 513 }],
    ['an index that is no number', { pattern_index: '0' }],
    ['an index below 0', { pattern_index: -1 }],
    ['an id of no pattern', { pattern_id: 'x' }],
  ])('that cannot be read makes no alert, and the call is stored: %s', async (_fault, given) => {
    const { org, served } = await organizationWith(['secret']);
    await sendVerdict(org, typeof given === 'object' ? verdictOf(served, 0, given ?? {}) : given);
    expect(await alertsOf(org)).toEqual([]);
    expect((await api.get('/api/v1/events', org.adminKey)).body.events).toHaveLength(1);
  });

  it('with the index of another pattern makes the alert by the pattern, not by the index', async () => {
    const { org, served } = await organizationWith(['secret', 'falcon']);
    await sendVerdict(org, verdictOf(served, 1, { pattern_index: 99 }));
    expect(await alertsOf(org)).toEqual([alertOf(1)]);
  });
});
