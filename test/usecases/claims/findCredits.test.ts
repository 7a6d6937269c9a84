import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findClaim, listCreditsOf, type StoredClaim } from '../../../db/claims/claims.js';
import { publicId } from '../../../domain/ids.js';
import { findCredits, rejectCredit } from '../../../usecases/claims/findCredits.js';
import { recordClaimMove } from '../../../usecases/claims/moveClaim.js';
import { createTestOrganization, type TestOrganization } from '../../support/api.js';
import { aCommand, storeClaim } from '../../support/claims.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';

let database: TestDatabase;
let org: TestOrganization;

beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database?.close());

const newOrg = async () => {
  org = await createTestOrganization(database.database);
};

/** A bill with rows that return money, on a day after every filing. */
async function aBill(
  rows: readonly { usd: string; text?: string; category?: string; account?: string }[],
  { day = '2999-01-05', rank = 20 } = {},
): Promise<string> {
  const id = randomUUID();
  const { orgId } = org;
  const ask = (sql: string, more: unknown[]) => database.superuser.query(sql, [orgId, id, ...more]);
  await ask(
    `insert into billing_sources (org_id, id, kind, provider, filename, sha256, size_bytes, status, format, source_rank)
     values ($1, $2::uuid, 'file', 'openai', 'bill.json', encode(sha256(convert_to($2::uuid::text, 'UTF8')), 'hex'), 1, 'succeeded', 'openai_pages', $3)`,
    [rank],
  );
  await ask(
    `insert into billing_rows (org_id, source_id, row_no, feed, report, provider, provider_account_id, day, period_start, period_end,
       charge_category, line_item, observable, token_class, amount_usd, currency, original_amount)
     select $1::uuid, $2::uuid, row_number() over (), 'cost', '', 'openai', coalesce(r.account, 'acc-1'), $3::date, $3::date, $3::date + 1,
       coalesce(r.category, 'credit'), coalesce(r.text, 'Credit'), false, 'other', r.usd, 'USD', r.usd
     from jsonb_to_recordset($4::jsonb) as r(usd numeric, text text, category text, account text)`,
    [day, JSON.stringify(rows)],
  );
  await ask(
    `insert into billing_days (org_id, source_id, provider, source_rank, source_fetched_at, provider_account_id, day, feed, report,
       charge_category, row_count, amount_usd)
     select org_id, source_id, provider, $3, now(), provider_account_id, day, feed, report, charge_category, count(*), sum(amount_usd)
     from billing_rows where org_id = $1 and source_id = $2 group by 1, 2, 3, 6, 7, 8, 9, 10`,
    [rank],
  );
  return id;
}

const aClaim = (cents = 12_345, status: StoredClaim['status'] = 'submitted_to_provider') =>
  storeClaim(org.orgDb, { status, disputes: [{ cents }] });
const find = () => findCredits(org.orgDb, { provider: null });
const creditsOf = async (claim: StoredClaim) =>
  (await listCreditsOf(org.orgDb, [claim.id])).map(({ status, cents }) => [status, cents]);
const notices = async () =>
  (
    await database.superuser.query(
      `select notice, message, details from alerts where org_id = $1 and kind = 'notice' order by created_at, message`,
      [org.orgId],
    )
  ).rows;
const move = (claim: StoredClaim, to: StoredClaim['status'], cents: number | null) =>
  org.orgDb.transaction(async (inside) => {
    const now = await findClaim(inside, claim.id);
    const command = aCommand({ id: claim.id, version: now?.version ?? 0 }, to);
    return recordClaimMove(inside, { ...command, fields: { ...command.fields, creditIssuedCents: cents } });
  });

describe('a run that searches bills for the credits of claims', () => {
  it('proposes a matching row once and reports it once, whichever copy of the bill contains it', async () => {
    await newOrg();
    const claim = await aClaim();
    await find();
    expect(await creditsOf(claim)).toEqual([]);
    await aBill([{ usd: '-123.45' }, { usd: '-7.77' }, { usd: '500', category: 'adjustment' }]);
    await find();
    await find();
    await aBill([{ usd: '-123.45', text: 'Service credit' }, { usd: '-7.77' }], { rank: 30 });
    await find();
    expect(await creditsOf(claim)).toEqual([['proposed', 12_345]]);
    expect(await notices()).toMatchObject([
      {
        notice: 'claim_credit_proposed',
        message: `$123.45 on the bill of 2999-01-05 looks like the answer to the claim ${publicId('clm', claim.id)}, which asks for $123.45.`,
        details: { amount_cents: 12_345, suggested_status: 'credit_issued' },
      },
    ]);
  });

  it('accepts it with the move that it proposes, and proposes it for nothing else', async () => {
    await newOrg();
    const claim = await aClaim();
    await aBill([{ usd: '-123.45' }]);
    await find();
    await move(claim, 'credit_issued', 12_345);
    expect(await creditsOf(claim)).toEqual([['accepted', 12_345]]);
    const later = await aClaim();
    await find();
    expect(await creditsOf(later)).toEqual([]);
  });

  it('finds once what several runs look for at once, while the claim is moved', async () => {
    await newOrg();
    const [moved, other] = [await aClaim(), await aClaim(500)];
    await aBill([{ usd: '-123.45' }, { usd: '-5' }]);
    await Promise.all([find(), find(), move(moved, 'credit_issued', 12_345), find(), find()]);
    await find();
    expect([await creditsOf(moved), await creditsOf(other)]).toEqual([
      [['accepted', 12_345]],
      [['proposed', 500]],
    ]);
  });

  it('leaves a row free that another amount was credited than it', async () => {
    await newOrg();
    const [claim, other] = [await aClaim(), await aClaim(500)];
    await aBill([{ usd: '-5', text: `re ${publicId('clm', claim.id)}` }]);
    await find();
    expect(await creditsOf(claim)).toEqual([['proposed', 500]]);
    await move(claim, 'denied', null);
    expect(await creditsOf(claim)).toEqual([['rejected', 500]]);
    await find();
    expect(await creditsOf(other)).toEqual([['proposed', 500]]);
  });

  it('does not propose a refused row again, and proposes no row that fits two claims alike', async () => {
    await newOrg();
    const claim = await aClaim();
    await aBill([{ usd: '-123.45' }]);
    await find();
    const [credit] = await listCreditsOf(org.orgDb, [claim.id]);
    const reject = () =>
      rejectCredit(
        org.orgDb,
        { claimId: claim.id, creditId: credit?.id ?? '' },
        { caller: { keyId: 'key_a' }, requestId: 'req_a' },
      );
    await reject();
    await reject();
    await find();
    expect(await creditsOf(claim)).toEqual([['rejected', 12_345]]);
    const [one, two] = [await aClaim(777), await aClaim(777)];
    await aBill([{ usd: '-7.77' }], { day: '2999-01-06' });
    await find();
    expect([await creditsOf(one), await creditsOf(two)]).toEqual([[], []]);
  });

  it('takes a proposal back whose row is gone, and proposes it again when it is back', async () => {
    await newOrg();
    const claim = await aClaim();
    const bill = await aBill([{ usd: '-123.45' }]);
    const supersede = (at: string) =>
      database.superuser.query(
        `update billing_days set superseded_at = ${at} where org_id = $1 and source_id = $2`,
        [org.orgId, bill],
      );
    await find();
    await supersede('now()');
    await find();
    expect(await creditsOf(claim)).toEqual([['rejected', 12_345]]);
    await supersede('null');
    await find();
    expect((await creditsOf(claim)).sort()).toEqual([
      ['proposed', 12_345],
      ['rejected', 12_345],
    ]);
  });

  it('finds the row of a credit that was recorded before it came', async () => {
    await newOrg();
    const claim = await aClaim(12_345, 'credit_issued');
    const open = await aClaim(500);
    await aBill([{ usd: '-123.45' }]);
    await find();
    expect(await creditsOf(claim)).toEqual([['accepted', 12_345]]);
    expect(await creditsOf(open)).toEqual([]);
    expect(await notices()).toEqual([]);
  });

  it('looks neither at drafts, nor at another account or provider', async () => {
    await newOrg();
    const [draft, filed] = [await aClaim(12_345, 'draft'), await aClaim(999)];
    await aBill([{ usd: '-123.45' }, { usd: '-9.99', account: 'acc-2' }]);
    await find();
    expect([await creditsOf(draft), await creditsOf(filed)]).toEqual([[], []]);
  });
});
