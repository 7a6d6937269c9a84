import { afterAll, beforeAll, expect, it } from 'vitest';
import { findingCauses } from '../../../db/migrations/0037_finding_causes.js';
import { MIGRATIONS } from '../../../db/migrations/index.js';
import { publicId } from '../../../domain/ids.js';
import { startTestApi, type TestApi } from '../../support/api.js';
import { aFindingDay, storeFindings } from '../../support/findings.js';

let api: TestApi;

beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

const USD = 10n ** 12n;

it('the migration to causes states the amounts of reasons that are there as claims round them', async () => {
  const org = await api.addOrganization();
  const { superuser } = api.database;
  const [wrong = '', short = '', own = '', key = ''] = await storeFindings(org.orgDb, [
    {
      model: 'wrong',
      days: [
        aFindingDay('2026-03-10', 109_017_591_375_000n),
        aFindingDay('2026-03-12', 1_000n * USD - 7_000_000_000n),
      ],
    },
    { model: 'short', direction: 'undercharge', days: [aFindingDay('2026-03-10', -36_359_000_000_000n)] },
    { model: 'own', blame: 'own', days: [aFindingDay('2026-03-10', 20_816_000_000_000n)] },
    { model: 'key' },
  ]);
  const confirmed = await api.post(
    `/api/v1/financial/review-queue/${publicId('fnd', wrong)}/confirm`,
    {},
    org.adminKey,
  );
  expect(confirmed.status).toBe(201);
  const amount = '$1109.02 too much on 2 days from 2026-03-10 to 2026-03-12.';
  const before: [string, string][] = [
    [wrong, `Cached input cost more. The bill is ${amount} Right is taken for 10 percent below.`],
    [short, 'Input cost less. The bill is $36.36 too little on 2026-03-10.'],
    [own, 'Calls came twice. The bill is $20.82 above what these events cost on 2026-03-10.'],
    [key, 'The bill has use of key k, which is unknown.'],
  ];
  for (const [id, reason] of before)
    await superuser.query('update findings set reason = $2 where id = $1', [id, reason]);
  await superuser.query('update disputes set reason = $2 where org_id = $1', [org.orgId, before[0]?.[1]]);
  const [{ run_id: runId }] = (await superuser.query('select run_id from findings where id = $1', [wrong]))
    .rows;
  const explanation = { findings: [{ kind: 'x', reason: before[0]?.[1] }], days: [] };
  await superuser.query(
    `insert into series_explanations (org_id, provider, provider_account_id, model, run_id, explanation) values ($1, 'openai', 'acc-1', 'm', $2, $3)`,
    [org.orgId, runId, explanation],
  );
  const client = await superuser.connect();
  try {
    const later = MIGRATIONS.slice(MIGRATIONS.indexOf(findingCauses)).toReversed();
    for (const { down } of later) await client.query(`begin; ${down}; commit`);
    for (const { up } of later.toReversed()) await client.query(`begin; ${up}; commit`);
  } finally {
    client.release();
  }
  const { rows } = await superuser.query(
    'select model, cause, reason from findings where org_id = $1 order by model',
    [org.orgId],
  );
  const cause = 'Cached input cost more. Right is taken for 10 percent below.';
  const reason = `${cause} The bill is $1,109.01 too much on 2 days from 2026-03-10 to 2026-03-12.`;
  expect(rows).toEqual([
    { model: 'key', cause: before[3]?.[1], reason: before[3]?.[1] },
    {
      model: 'own',
      cause: 'Calls came twice.',
      reason: 'Calls came twice. The bill is $20.81 above what these events cost on 2026-03-10.',
    },
    {
      model: 'short',
      cause: 'Input cost less.',
      reason: 'Input cost less. The bill is $36.35 too little on 2026-03-10.',
    },
    { model: 'wrong', cause, reason },
  ]);
  const disputes = await superuser.query('select reason from disputes where org_id = $1', [org.orgId]);
  expect(disputes.rows).toEqual([{ reason }]);
  const explained = await superuser.query('select explanation from series_explanations where org_id = $1', [
    org.orgId,
  ]);
  expect(explained.rows[0].explanation).toEqual({
    findings: [{ kind: 'x', reason: before[0]?.[1], cause }],
    days: [],
  });
});
