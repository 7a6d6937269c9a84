import { randomUUID } from 'node:crypto';
import { WithStartWorkflowOperation } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ClaimCommand, ClaimStatus } from '../../domain/claims/lifecycle.js';
import { claimWorkflowId, MOVE_UPDATE, WAKE_SIGNAL, WORKFLOW_NAMES } from '../../workflows/contract.js';
import { aCommand } from '../support/claims.js';
import { type ClaimsPlace, startClaimsPlace, uuidOf } from '../support/claimsPlace.js';
import { type RunningWorker, until } from '../support/engine.js';
import { saveHistory } from './saveHistory.js';

/** The histories of a claim's life that test/workflows/replay.test.ts replays: `npm run workflows:record`. */
let place: ClaimsPlace;
beforeAll(async () => {
  place = await startClaimsPlace();
}, 300_000);
afterAll(() => place?.close());

const idOf = (claim: string) => claimWorkflowId({ orgId: place.api.orgId, claimId: uuidOf(claim) });
const working = async (
  work: (worker: RunningWorker) => Promise<void>,
  replace?: Parameters<ClaimsPlace['engine']['startWorker']>[0],
) => {
  const worker = await place.engine.startWorker(replace);
  await work(worker);
  await worker.stop();
};
const move = async (claim: string, status: ClaimStatus, more: object = {}) => {
  const answer = await place.patch(claim, { status, ...more });
  expect(answer.status, JSON.stringify(answer.body)).toBe(200);
};
const wake = (claim: string) =>
  place.engine.orchestrator.wakeClaim({ orgId: place.api.orgId, claimId: uuidOf(claim) });
/** A move past the API, which would refuse it itself. */
const ask = (claim: string, to: ClaimStatus, parts: Partial<ClaimCommand>) => {
  const command = aCommand({ id: uuidOf(claim), version: 0 }, to, parts);
  return place.client.workflow.executeUpdateWithStart(MOVE_UPDATE, {
    startWorkflowOperation: new WithStartWorkflowOperation(WORKFLOW_NAMES.claimLifecycle, {
      workflowId: idOf(claim),
      taskQueue: place.engine.taskQueue,
      args: [{ orgId: place.api.orgId, claimId: uuidOf(claim) }],
      workflowIdConflictPolicy: 'USE_EXISTING',
    }),
    updateId: randomUUID(),
    args: [command],
  });
};

it('records a claim from its filing to its credit', () =>
  working(async () => {
    const claim = await place.aClaim();
    await move(claim, 'submitted_to_provider', { external_ticket_id: 'T-1' });
    await move(claim, 'provider_acknowledged');
    await move(claim, 'credit_approved');
    await move(claim, 'credit_issued', { credit_issued_cents: 12_345 });
    await saveHistory(place.client, idOf(claim), 'claim-credited');
  }));

it('records moves that are refused: by the workflow itself, by the row, for their time', () =>
  working(async () => {
    const claim = await place.aClaim({ status: 'submitted_to_provider' });
    await move(claim, 'escalated');
    await expect(ask(claim, 'draft', { version: 3 })).rejects.toMatchObject({
      cause: { type: 'illegal_transition' },
    });
    await expect(ask(claim, 'under_review', { version: 1 })).rejects.toMatchObject({
      cause: { type: 'claim_conflict' },
    });
    await expect(ask(claim, 'under_review', { version: 3, notAfterMicros: 1 })).rejects.toMatchObject({
      cause: { type: 'command_too_late' },
    });
    await Promise.allSettled([
      ask(claim, 'denied', { version: 3 }),
      ask(claim, 'under_review', { version: 3 }),
      ask(claim, 'credit_approved', { version: 3 }),
    ]);
    if (!['denied'].includes((await place.get(claim)).status)) {
      if ((await place.get(claim)).status === 'credit_approved') await move(claim, 'escalated');
      await move(claim, 'denied', { denial_reason: 'no', violation_type: 'other' });
    }
    await saveHistory(place.client, idOf(claim), 'claim-refused-moves');
  }));

it('records notices that become due', () =>
  working(async () => {
    const claim = await place.aClaim({ status: 'under_review' });
    const due = (when: string) =>
      place.api.database.superuser.query(`update claims set next_action_at = ${when} where id = $1`, [
        uuidOf(claim),
      ]);
    await due(`now() + interval '2 seconds'`);
    await wake(claim);
    const notices = async () =>
      (
        await place.api.database.superuser.query(
          `select from alerts where org_id = $1 and notice = 'claim_due'`,
          [place.api.orgId],
        )
      ).rowCount;
    await until('a notice', notices, (count) => count === 1);
    await move(claim, 'denied', { denial_reason: 'no', violation_type: 'other' });
    await saveHistory(place.client, idOf(claim), 'claim-due');
  }));

it('records notices that are made up for, a snooze, and its end', () => {
  let claim = '';
  const timers = async () =>
    ((await place.handleOf(claim).fetchHistory()).events ?? []).filter(
      (one) => one.timerStartedEventAttributes,
    );
  const snoozeUntil = (when: string) =>
    place.api.database.superuser.query(
      `update claims set snoozed_until = ${when}, next_action = 'remind', next_action_at = ${when} where id = $1`,
      [uuidOf(claim)],
    );
  return working(async () => {
    claim = await place.aClaim({ status: 'escalated' });
    await place.api.database.superuser.query(
      `update claims set entered_at = entered_at - interval '36 days', next_action_at = next_action_at - interval '36 days' where id = $1`,
      [uuidOf(claim)],
    );
    await wake(claim);
    // Three that are past, and a timer for the fourth.
    await until('the first timer', timers, ({ length }) => length === 1);
    await snoozeUntil(`now() + interval '1 year'`);
    await wake(claim);
    await until('another timer', timers, ({ length }) => length === 2);
    await snoozeUntil(`now() + interval '2 seconds'`);
    await wake(claim);
    await until('the timer after its end', timers, ({ length }) => length === 4);
    await move(claim, 'denied', { denial_reason: 'no', violation_type: 'other' });
    await saveHistory(place.client, idOf(claim), 'claim-snoozed');
  });
});

it('records a claim that goes on in a new history', () =>
  working(async () => {
    const claim = await place.aClaim();
    const { firstExecutionRunId } = await place.client.workflow.start(WORKFLOW_NAMES.claimLifecycle, {
      workflowId: idOf(claim),
      taskQueue: place.engine.taskQueue,
      args: [{ orgId: place.api.orgId, claimId: uuidOf(claim), eventsMax: 20 }],
    });
    await move(claim, 'submitted_to_provider');
    await move(claim, 'provider_acknowledged');
    await move(claim, 'under_review');
    await saveHistory(place.client, idOf(claim), 'claim-continued-as-new', firstExecutionRunId);
    await move(claim, 'escalated');
    await move(claim, 'partial', { credit_issued_cents: 5 });
    expect((await place.historyOf(claim)).length).toBe(6);
  }));

it('records a claim whose workflow is cancelled in the middle of a move', () => {
  let isAtWork = false;
  return working(
    async () => {
      const claim = await place.aClaim();
      const moving = place.submit(claim);
      await until('the move', async () => isAtWork, Boolean);
      await place.handleOf(claim).cancel();
      expect((await moving).status).toBe(200);
      await saveHistory(place.client, idOf(claim), 'claim-cancelled');
    },
    (activities) => ({
      recordClaimMove: async (given) => {
        isAtWork = true;
        await new Promise((resolve) => setTimeout(resolve, 1_000));
        return activities.recordClaimMove(given);
      },
    }),
  );
});

it('records a draft that is discarded', () =>
  working(async () => {
    const claim = await place.aClaim();
    await wake(claim);
    await until(
      'the first look',
      async () => (await place.handleOf(claim).fetchHistory()).events ?? [],
      (events) => events.some((event) => event.activityTaskCompletedEventAttributes),
    );
    const { superuser } = place.api.database;
    await superuser.query('update disputes set claim_id = null where claim_id = $1', [uuidOf(claim)]);
    await superuser.query('delete from claims where id = $1', [uuidOf(claim)]);
    await wake(claim);
    await saveHistory(place.client, idOf(claim), 'claim-discarded');
  }));

it('records a claim whose effects could not be had', () => {
  let isBroken = true;
  return working(
    async () => {
      const claim = await place.aClaim({ status: 'under_review' });
      await wake(claim);
      const events = async () => (await place.handleOf(claim).fetchHistory()).events ?? [];
      await until('the failure', events, (found) => found.some((event) => event.timerStartedEventAttributes));
      isBroken = false;
      await place.handleOf(claim).signal(WAKE_SIGNAL);
      await move(claim, 'denied', { denial_reason: 'no', violation_type: 'other' });
      await saveHistory(place.client, idOf(claim), 'claim-effect-failed');
    },
    (activities) => ({
      readClaim: async (given) => {
        if (isBroken) throw ApplicationFailure.nonRetryable('this is broken', 'broken');
        return activities.readClaim(given);
      },
    }),
  );
});
