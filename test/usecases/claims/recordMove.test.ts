import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  findClaim,
  listClaimEvents,
  listClaimOutcomes,
  type StoredClaim,
} from '../../../db/claims/claims.js';
import { openDatabase } from '../../../db/client.js';
import { OrgDb } from '../../../db/orgDb.js';
import { CLAIM_STATUSES, type ClaimCommand, canMove } from '../../../domain/claims/lifecycle.js';
import { publicId } from '../../../domain/ids.js';
import { recordClaimMove, waitForMove } from '../../../usecases/claims/moveClaim.js';
import { createTestOrganization, type TestOrganization } from '../../support/api.js';
import { aCommand, storeClaim } from '../../support/claims.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { anEndpoint } from '../../support/webhooks.js';

let database: TestDatabase;
let org: TestOrganization;
let db: OrgDb;
beforeAll(async () => {
  database = await createTestDatabase();
  org = await createTestOrganization(database.database);
  db = org.orgDb;
}, 300_000);
afterAll(() => database?.close());

const record = (command: ClaimCommand) => db.transaction((inside) => recordClaimMove(inside, command));
const rowsOf = async (sql: string, claim: StoredClaim) =>
  (await database.superuser.query(sql, [org.orgId, claim.id])).rows;
const stateOf = async (claim: StoredClaim) => ({
  claim: await findClaim(db, claim.id),
  events: await listClaimEvents(db, claim.id),
  outcomes: await listClaimOutcomes(db, claim.id),
});

describe('the database and the table of moves', () => {
  it('allow the same pairs of statuses', async () => {
    for (const from of CLAIM_STATUSES)
      for (const to of CLAIM_STATUSES) {
        const { rows } = await database.superuser.query('select is_claim_move($1, $2) as legal', [from, to]);
        expect(rows[0].legal, `${from} to ${to}`).toBe(canMove(from, to));
      }
  });

  it('allow the same changes of a row to every writer', async () => {
    const claim = await storeClaim(db, { status: 'under_review' });
    await expect(
      database.superuser.query(`update claims set status = 'submitted_to_provider' where id = $1`, [
        claim.id,
      ]),
    ).rejects.toThrow('a claim does not go from under_review to submitted_to_provider');
    await expect(
      database.superuser.query('update claims set submitted_at = now() where id = $1', [claim.id]),
    ).rejects.toThrow('never changes');
  });
});

describe('a recorded move', () => {
  it('files a draft: times by the database, disputes claimed, one row of history and of the log', async () => {
    const claim = await storeClaim(db);
    const after = await record(aCommand(claim, 'submitted_to_provider', { keyId: 'key_filing' }));
    expect(after).toMatchObject({
      status: 'submitted_to_provider',
      version: 2,
      resolvedAtMicros: null,
      nextAction: 'remind',
    });
    expect(after.submittedAtMicros).toBe(after.enteredAtMicros);
    const { events, outcomes } = await stateOf(claim);
    expect(events.map(({ from, to, version, actor }) => [from, to, version, actor])).toEqual([
      [null, 'draft', 1, 'key_test'],
      ['draft', 'submitted_to_provider', 2, 'key_filing'],
    ]);
    expect(outcomes).toEqual([]);
    expect(await rowsOf('select status from disputes where org_id = $1 and claim_id = $2', claim)).toEqual([
      { status: 'claimed' },
    ]);
  });

  it('keeps the time of filing and of the end for ever', async () => {
    const claim = await storeClaim(db, { status: 'submitted_to_provider' });
    const approved = await record(aCommand(claim, 'credit_approved'));
    const ended = await record(aCommand(approved, 'partial'));
    expect([approved.submittedAtMicros, ended.submittedAtMicros]).toEqual([
      claim.submittedAtMicros,
      claim.submittedAtMicros,
    ]);
    expect(ended).toMatchObject({ nextAction: null, nextActionAtMicros: null, creditIssuedCents: 1_000 });
    expect(ended.resolvedAtMicros).toBe(ended.enteredAtMicros);
  });

  it('ends a claim: outcome by kind, disputes resolved, days and netted undercharges free', async () => {
    const claim = await storeClaim(db, {
      status: 'under_review',
      disputes: [
        { cents: 2_000, kind: 'list_rate_mismatch' },
        { cents: 5_000, kind: 'cache_read_rate_mismatch' },
        { cents: 3_000, kind: 'cache_read_rate_mismatch', probability: 0.5 },
      ],
      recoverableCents: 9_000,
    });
    await database.superuser.query(
      `insert into claim_undercharges (org_id, claim_id, finding_id, day, provider, provider_account_id, model, kind, variant, impact_usd)
       values ($1, $2, gen_random_uuid(), '2026-03-10', 'openai', 'acc-1', 'm', 'list_rate_mismatch', 'v', -10)`,
      [org.orgId, claim.id],
    );
    await record(
      aCommand(claim, 'partial', {
        fields: {
          denialReason: 'the rest is yours',
          violationType: null,
          creditIssuedCents: 3_000,
          externalTicketId: 'T-9',
        },
      }),
    );
    const { claim: ended, outcomes } = await stateOf(claim);
    expect(ended).toMatchObject({ status: 'partial', creditIssuedCents: 3_000, externalTicketId: 'T-9' });
    expect(outcomes).toMatchObject([
      { status: 'partial', denialReason: 'the rest is yours', creditIssuedCents: 3_000 },
    ]);
    expect(
      await rowsOf(
        `select claimed_type, claimed_cents, fraction, probability, raw_probability, weight_set from claim_outcome_kinds
         where org_id = $1 and claim_id = $2 order by claimed_type`,
        claim,
      ),
    ).toEqual([
      {
        claimed_type: 'cache_read_rate_mismatch',
        claimed_cents: '8000',
        fraction: '0.333333333333',
        probability: 0.97,
        raw_probability: 0.97,
        weight_set: 'default-1',
      },
      expect.objectContaining({ claimed_type: 'list_rate_mismatch', claimed_cents: '2000' }),
    ]);
    expect(
      await rowsOf(
        `select distinct p.status, p.resolution, p.resolved_by, d.live from disputes p
         join dispute_days d on d.org_id = p.org_id and d.dispute_id = p.id where p.org_id = $1 and p.claim_id = $2`,
        claim,
      ),
    ).toEqual([{ status: 'resolved', resolution: 'credit_partial', resolved_by: 'key_test', live: false }]);
    expect(
      await rowsOf('select live from claim_undercharges where org_id = $1 and claim_id = $2', claim),
    ).toEqual([{ live: false }]);
  });

  it('sends its message and audit entry once, and recomputes the weights at the end', async () => {
    const receiver = await anEndpoint(org, 'https://hooks.example.com/claims', ['claim.status_changed']);
    const claim = await storeClaim(db, { status: 'under_review' });
    const ended = await record(aCommand(claim, 'partial', { keyId: 'key_a', requestId: 'req-1' }));
    const { rows: told } = await database.superuser.query(
      `select m.body from webhook_messages m join webhook_deliveries d on d.message_id = m.id
       where m.org_id = $1 and d.endpoint_id = $2 and m.type = 'claim.status_changed' order by m.body::json ->> 'timestamp'`,
      [org.orgId, receiver.id],
    );
    expect(told.map(({ body }) => JSON.parse(body).data.status)).toEqual([
      'submitted_to_provider',
      'under_review',
      'partial',
    ]);
    expect(JSON.parse(told[2].body).data).toMatchObject({
      claim_id: publicId('clm', claim.id),
      version: ended.version,
      previous_status: 'under_review',
      credit_issued_cents: 1_000,
    });
    const { rows: log } = await database.superuser.query(
      'select action, actor_id, request_id, details from audit_log where org_id = $1 and subject_id = $2 order by seq',
      [org.orgId, publicId('clm', claim.id)],
    );
    expect(log.map(({ action }) => action)).toEqual([
      'claim.submitted',
      'claim.status_changed',
      'claim.status_changed',
    ]);
    expect(log[2]).toMatchObject({ actor_id: 'key_a', request_id: 'req-1' });
    expect(
      await rowsOf(
        `select kind from outbox where org_id = $1 and subject_id = $2 and kind like 'weights%'`,
        claim,
      ),
    ).toEqual([{ kind: 'weights.recompute' }]);
  });

  it('leaves a dispute as it is when a person resolved it meanwhile', async () => {
    const claim = await storeClaim(db, { status: 'under_review' });
    await database.superuser.query(
      `update disputes set status = 'resolved', resolution = 'duplicate', resolved_at = now(), resolved_by = 'key_other' where claim_id = $1`,
      [claim.id],
    );
    await record(aCommand(claim, 'denied'));
    expect(
      await rowsOf('select resolution, resolved_by from disputes where org_id = $1 and claim_id = $2', claim),
    ).toEqual([{ resolution: 'duplicate', resolved_by: 'key_other' }]);
  });

  it('resolves the disputes of a denied claim by its violation type', async () => {
    for (const [violationType, resolution] of [
      ['client_metering_error', 'our_error'],
      ['contract_terms', 'provider_correct'],
      ['insufficient_evidence', 'written_off'],
      ['cache_read_rate_mismatch', 'written_off'],
    ] as const) {
      const claim = await storeClaim(db, { status: 'under_review' });
      const fields = {
        denialReason: 'no',
        violationType,
        creditIssuedCents: null,
        externalTicketId: null,
      };
      await record(aCommand(claim, 'denied', { fields }));
      expect(
        await rowsOf('select resolution from disputes where org_id = $1 and claim_id = $2', claim),
        violationType,
      ).toEqual([{ resolution }]);
    }
  });

  it('is recorded once, however often the command arrives', async () => {
    const claim = await storeClaim(db);
    const command = aCommand(claim, 'submitted_to_provider');
    const first = await record(command);
    const before = await stateOf(claim);
    // Also after the claim has gone on, and after its time.
    await record(aCommand(first, 'under_review'));
    await record({ ...command, notAfterMicros: 0 });
    const after = await stateOf(claim);
    expect(after.events.length).toBe(before.events.length + 1);
    expect(after.claim?.status).toBe('under_review');
  });
});

describe('a refused move changes nothing', () => {
  const refused = async (claim: StoredClaim, command: ClaimCommand, code: string) => {
    const before = await stateOf(claim);
    await expect(record(command)).rejects.toMatchObject({ code });
    expect(await stateOf(claim)).toEqual(before);
  };

  it('when the claim is missing', () =>
    expect(record(aCommand({ id: randomUUID(), version: 1 }, 'submitted_to_provider'))).rejects.toMatchObject(
      {
        code: 'not_found',
      },
    ));

  it('when the deadline of its request has passed', async () => {
    const claim = await storeClaim(db);
    const notAfterMicros = Number(claim.createdAtMicros) - 1;
    await refused(claim, aCommand(claim, 'submitted_to_provider', { notAfterMicros }), 'command_too_late');
  });

  it('when the claim has another version, or the move is illegal', async () => {
    const claim = await storeClaim(db, { status: 'submitted_to_provider' });
    await refused(claim, aCommand({ ...claim, version: 1 }, 'under_review'), 'claim_conflict');
    await refused(claim, aCommand(claim, 'submitted_to_provider'), 'illegal_transition');
    await refused(claim, aCommand(claim, 'draft'), 'illegal_transition');
  });

  it('when a partial credit is the whole', async () => {
    const claim = await storeClaim(db, { status: 'under_review', disputes: [{ cents: 1_000 }] });
    await refused(claim, aCommand(claim, 'partial'), 'invalid_body');
  });

  it('of several at once one is recorded, the others find another claim than they saw', async () => {
    const claim = await storeClaim(db, { status: 'submitted_to_provider' });
    const outcomes = await Promise.allSettled(
      Array.from({ length: 8 }, () => record(aCommand(claim, 'escalated'))),
    );
    expect(outcomes.filter(({ status }) => status === 'fulfilled').length).toBe(1);
    expect((await stateOf(claim)).events.length).toBe(3);
  });
});

describe('a move with unknown outcome', () => {
  it('is polled until its deadline while the database is away, and then given up', async () => {
    const away = openDatabase({
      url: 'postgres://nobody@127.0.0.1:1/nothing',
      poolMax: 1,
      applicationName: 'test',
      statementTimeoutMs: 1_000,
    });
    const pauses: number[] = [];
    const waiting = waitForMove(
      new OrgDb(away, org.orgId),
      { claimId: randomUUID(), commandId: randomUUID(), notAfterMicros: 1 },
      async (ms) => pauses.push(ms),
    );
    await expect(waiting).rejects.toMatchObject({ code: 'service_unavailable' });
    // Longer than the four seconds for which a command counts.
    expect(pauses.reduce((sum, ms) => sum + ms, 0)).toBeGreaterThan(4_500);
    await away.close();
  });
});
