import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { WebhookEventType } from '../../domain/webhooks/messages.js';
import { recordClaimMove } from '../../usecases/claims/moveClaim.js';
import { noteClaimDue } from '../../usecases/claims/reminders.js';
import { DISPUTES } from '../api/support/financial.js';
import { aCommand, storeClaim } from '../support/claims.js';
import { type ClaimsPlace, startClaimsPlace, uuidOf } from '../support/claimsPlace.js';
import { until } from '../support/engine.js';
import { SHORT_PACE } from '../support/webhookPlace.js';
import { startWebhookReceiver, type WebhookReceiver } from '../support/webhookReceiver.js';
import {
  anEndpoint,
  openOutbound,
  sendMessages,
  type TestEndpoint,
  testWebhookDelivery,
} from '../support/webhooks.js';

const { outbound, allowed } = openOutbound();
let place: ClaimsPlace;
const receivers: WebhookReceiver[] = [];

beforeAll(async () => {
  place = await startClaimsPlace({
    asksAgain: true,
    engine: {
      deliverWebhook: testWebhookDelivery(outbound),
      webhookPace: SHORT_PACE,
      sweep: { queuedSeconds: 0, silentSeconds: 0 },
    },
  });
  await place.engine.startWorker();
}, 300_000);
afterAll(async () => {
  await place?.close();
  for (const receiver of receivers) await receiver.close();
});

interface Subscriber {
  receiver: WebhookReceiver;
  endpoint: TestEndpoint;
}

/** A receiver with an endpoint for these types; none: all types. */
async function aSubscriber(types: readonly WebhookEventType[]): Promise<Subscriber> {
  const receiver = await startWebhookReceiver();
  receivers.push(receiver);
  allowed.add(receiver.host);
  return { receiver, endpoint: await anEndpoint(place.api, receiver.url, types) };
}

/** The verified bodies of a type that a receiver got, once the expected number has arrived. */
async function bodiesOf({ receiver, endpoint }: Subscriber, type: WebhookEventType, count: number) {
  const read = () =>
    receiver.received
      .map(({ body, headers }) => {
        const verified = new Webhook(endpoint.secret).verify(body, headers as Record<string, string>);
        return verified as { type: string; timestamp: string; data: Record<string, unknown> };
      })
      .filter((message) => message.type === type);
  return until(
    `${count} messages ${type}`,
    async () => read(),
    (found) => found.length >= count,
  );
}

/** Waits until the receivers have got a message that was left after all others. */
async function settle(...subscribers: Subscriber[]): Promise<void> {
  const [marker = ''] = await sendMessages(place.api);
  for (const { receiver } of subscribers)
    await until(
      'the marker',
      async () => receiver.ids(),
      (ids) => ids.some((id) => id === `msg_${marker.replaceAll('-', '')}`),
    );
}

const disputesOf = (claimId: string) =>
  place.api.orgDb.rows<{ id: string; finding_id: string; amount_cents: number; resolved_at: bigint }>(
    'select id, finding_id, amount_cents, resolved_at from disputes where org_id = $1 and claim_id = $2 order by amount_cents',
    [place.api.orgId, uuidOf(claimId)],
  );
const shown = (prefix: string, uuid: string) => `${prefix}_${uuid.replaceAll('-', '')}`;

describe('the webhook message dispute.resolved', () => {
  it('is sent once for each dispute of a claim that ends, to endpoints of its type and of all types', async () => {
    const all = await aSubscriber([]);
    const some = await aSubscriber(['dispute.resolved', 'gap_run.completed']);
    const other = await aSubscriber(['dispute.opened', 'gap_run.completed']);
    const id = await place.aClaim({ status: 'under_review', disputes: [{ cents: 1_234 }, { cents: 5_678 }] });
    expect((await place.patch(id, { status: 'credit_issued', credit_issued_cents: 6_912 })).status).toBe(200);
    const disputes = await disputesOf(id);
    for (const subscriber of [all, some]) {
      const bodies = await bodiesOf(subscriber, 'dispute.resolved', 2);
      bodies.sort((a, b) => Number(a.data.amount_cents) - Number(b.data.amount_cents));
      const { resolved_at: resolvedAt } = await place.get(id);
      expect(bodies).toEqual(
        disputes.map((dispute) => ({
          type: 'dispute.resolved',
          timestamp: resolvedAt,
          data: {
            dispute_id: shown('dsp', dispute.id),
            finding_id: shown('fnd', dispute.finding_id),
            claim_id: id,
            kind: 'cache_read_rate_mismatch',
            provider: 'openai',
            confidence_tier: 'HIGH',
            amount_cents: dispute.amount_cents,
            period_start: '2026-03-10',
            period_end: '2026-03-10',
            resolution: 'credit_received',
            resolved_at: resolvedAt,
          },
        })),
      );
    }
    await settle(all, some, other);
    expect(await bodiesOf(all, 'dispute.resolved', 2)).toHaveLength(2);
    expect(await bodiesOf(other, 'dispute.resolved', 0)).toEqual([]);
  });

  it('is sent once for a dispute that a person resolves, however often', async () => {
    const subscriber = await aSubscriber(['dispute.resolved', 'gap_run.completed']);
    const id = await place.aClaim();
    const [dispute] = await disputesOf(id);
    const path = `${DISPUTES}/${shown('dsp', dispute?.id ?? '')}`;
    await place.api.orgDb.run('update disputes set claim_id = null where org_id = $1 and claim_id = $2', [
      place.api.orgId,
      uuidOf(id),
    ]);
    const answers = await Promise.all(
      Array.from({ length: 4 }, () => place.api.post(path, { resolution: 'duplicate', notes: 'secret' })),
    );
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    await settle(subscriber);
    expect(await bodiesOf(subscriber, 'dispute.resolved', 1)).toMatchObject([
      {
        timestamp: answers[0]?.body.resolved_at,
        data: {
          dispute_id: answers[0]?.body.id,
          claim_id: null,
          resolution: 'duplicate',
          resolved_at: answers[0]?.body.resolved_at,
        },
      },
    ]);
    expect(subscriber.receiver.received.map(({ body }) => body).join()).not.toContain('secret');
  });
});

describe('the webhook message claim.reminder', () => {
  it('is sent once for each reminder, beside its alert', async () => {
    const all = await aSubscriber([]);
    const some = await aSubscriber(['claim.reminder', 'gap_run.completed']);
    const id = await place.aClaim({ status: 'submitted_to_provider' });
    await place.api.database.superuser.query(
      `update claims set entered_at = entered_at - interval '20 days', next_action_at = next_action_at - interval '20 days'
       where id = $1`,
      [uuidOf(id)],
    );
    await place.engine.orchestrator.wakeClaim({ orgId: place.api.orgId, claimId: uuidOf(id) });
    const bodies = await bodiesOf(some, 'claim.reminder', 2);
    // Once more for each of several processes that find it due.
    await Promise.all(Array.from({ length: 4 }, () => noteClaimDue(place.api.orgDb, uuidOf(id))));
    await settle(all, some);
    expect(await bodiesOf(some, 'claim.reminder', 2)).toHaveLength(2);
    const alerts = await place.api.orgDb.rows<{ id: string; details: Record<string, unknown> }>(
      `select id, details from alerts where org_id = $1 and subject_id = $2 order by details ->> 'due_at'`,
      [place.api.orgId, id],
    );
    bodies.sort((a, b) => (String(a.data.due_at) < String(b.data.due_at) ? -1 : 1));
    expect(bodies).toEqual(
      alerts.map(({ id: alertId, details }) => ({
        type: 'claim.reminder',
        timestamp: expect.stringMatching(/Z$/),
        data: {
          claim_id: id,
          alert_id: shown('alr', alertId),
          action: details.action,
          status: 'submitted_to_provider',
          since: details.since,
          due_at: details.due_at,
          provider: 'openai',
          total_recoverable_cents: 12_345,
          created_at: expect.stringMatching(/Z$/),
        },
      })),
    );
    expect(bodies.map(({ data }) => data.action)).toEqual(['remind', 'suggest_escalation']);
    expect(await bodiesOf(all, 'claim.reminder', 2)).toHaveLength(2);
    expect(await bodiesOf(all, 'alert.created', 2)).toHaveLength(2);
  });
});

describe('a change that is rolled back', () => {
  it('leaves no message of the disputes that it resolved', async () => {
    const subscriber = await aSubscriber(['dispute.resolved']);
    const { api } = place;
    const claim = await storeClaim(api.orgDb, { status: 'under_review' });
    const undone = api.orgDb.transaction(async (inside) => {
      await recordClaimMove(inside, aCommand(claim, 'denied'));
      throw new Error('rolled back');
    });
    await expect(undone).rejects.toThrow('rolled back');
    const left = await api.orgDb.rows(
      'select 1 from webhook_deliveries where org_id = $1 and endpoint_id = $2::uuid',
      [api.orgId, subscriber.endpoint.id],
    );
    expect(left).toEqual([]);
  });
});
