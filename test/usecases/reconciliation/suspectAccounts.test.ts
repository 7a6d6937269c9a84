import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { shiftDay } from '../../../domain/period.js';
import { listSuspectKeys } from '../../../usecases/billing/providerKeys.js';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';

const PAYER = '111122223333';
const OWN = '444455556666';
const STRANGE = '777788889999';
const MODEL = 'anthropic.claude-sonnet-4-5';
const FIRST = '2026-10-01';
const WINDOW = { provider: null, fromDay: FIRST, toDay: '2026-10-08', limit: 50 };

let api: TestApi;

beforeAll(async () => {
  api = await startTestApi();
});

afterAll(async () => {
  await api?.close();
});

/** An organization whose bill of AWS has three days of each of these linked accounts. */
async function anOrganization(linked: readonly string[]): Promise<TestOrganization> {
  const { superuser } = api.database;
  const organization = await api.addOrganization();
  const id = randomUUID();
  await superuser.query(
    `insert into billing_sources (org_id, id, kind, provider, filename, sha256, size_bytes, status, format, provider_account_id, source_rank)
     values ($1, $2::uuid, 'file', 'aws_bedrock', 'bill.csv', encode(sha256(convert_to($2::uuid::text, 'UTF8')), 'hex'), 1, 'succeeded', 'aws_cur', $3, 20)`,
    [organization.orgId, id, PAYER],
  );
  await superuser.query(
    `insert into billing_rows (org_id, source_id, row_no, feed, report, provider, provider_account_id, day, period_start, period_end,
       charge_category, line_item, observable, model, token_class, project, quantity, quantity_unit, amount_usd, currency, original_amount)
     select $1::uuid, $2::uuid, row_number() over (), 'cost', '', 'aws_bedrock', $3, day, day, day + 1, 'usage', 'input tokens', true, $4, 'input',
       project, 1000000, 'tokens', 3, 'USD', 3
     from unnest($5::text[]) project, (select generate_series($6::date, $6::date + 2, interval '1 day')::date as day) d`,
    [organization.orgId, id, PAYER, MODEL, linked, FIRST],
  );
  await superuser.query(
    `insert into billing_days (org_id, source_id, provider, source_rank, source_fetched_at, provider_account_id, day, feed, report,
       charge_category, row_count, amount_usd)
     select org_id, source_id, provider, 20, '2026-10-19', provider_account_id, day, feed, report, charge_category, count(*), sum(amount_usd)
     from billing_rows where org_id = $1 group by 1, 2, 3, 6, 7, 8, 9, 10`,
    [organization.orgId],
  );
  return organization;
}

/** A call of Bedrock on a day that names a linked account as its account or its key. */
async function addCall(orgId: string, day: string, named: { account?: string; key?: string }): Promise<void> {
  await api.database.superuser.query(
    `insert into events (org_id, timestamp, id, end_at, kind, status, provider, billed_by, provider_account_id, provider_key_id, model,
       response_model, api_key_hash, api_key_id, session_id, is_batch, input_tokens, output_tokens, cache_read, cache_creation, reasoning_tok,
       cached_tok, unmetered, cost_usd, computed_cost_usd, cost_source, usage_source, input_semantics, told_classes, biller_from_host,
       duration_ms, stop_reason, service_name, scope_name)
     select $1, $2::timestamptz, id, $2::timestamptz + interval '1 second', 'otel_span', 'ok', 'anthropic', 'aws_bedrock', $3, $4, $5,
       $5, id::text, 'key_test', '', false, 1000000, 0, 0, 0, 0, 0, false, 3, 3, 'computed', 'otel', 'inclusive', 3, true, 1000, 'stop', 'shop', 'test'
     from (select gen_random_uuid() as id) x`,
    [orgId, `${day}T10:00:00Z`, named.account ?? null, named.key ?? null, MODEL],
  );
}

async function register(orgId: string, key: string, revokedAt: string | null): Promise<void> {
  await api.database.superuser.query(
    `insert into provider_keys (org_id, provider, provider_key_id, name, status, revoked_at) values ($1, 'aws_bedrock', $2, $2, $3, $4)`,
    [orgId, key, revokedAt === null ? 'active' : 'revoked', revokedAt],
  );
}

const suspectsOf = async ({ orgDb }: TestOrganization) =>
  (await listSuspectKeys(orgDb, WINDOW)).keys.map(({ providerKeyId, reason, uses = [] }) => ({
    ...{ providerKeyId, reason },
    days: uses.map(({ day }) => day),
  }));

const DAYS = [FIRST, shiftDay(FIRST, 1), shiftDay(FIRST, 2)];

describe('linked accounts on a bill of AWS', () => {
  it('are suspect where no call and no entry names them, unlike the others and the payer', async () => {
    const organization = await anOrganization([PAYER, OWN, STRANGE]);
    await addCall(organization.orgId, FIRST, { account: OWN });
    expect(await suspectsOf(organization)).toEqual([
      { providerKeyId: STRANGE, reason: 'unknown', days: DAYS },
    ]);
    await register(organization.orgId, STRANGE, null);
    expect(await suspectsOf(organization)).toEqual([]);
  });

  it('are not suspect where the organization names none of its linked accounts', async () => {
    const organization = await anOrganization([PAYER, OWN, STRANGE]);
    expect(await suspectsOf(organization)).toEqual([]);
  });

  it('are suspect after their end, other than on days on which own calls name them', async () => {
    const organization = await anOrganization([OWN]);
    await register(organization.orgId, OWN, '2026-09-01T00:00:00Z');
    await addCall(organization.orgId, DAYS[1] as string, { key: OWN });
    expect(await suspectsOf(organization)).toEqual([
      { providerKeyId: OWN, reason: 'billed_after_revocation', days: [DAYS[0], DAYS[2]] },
    ]);
  });
});
