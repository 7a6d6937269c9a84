import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { loadPriceBook } from '../../../db/pricing/prices.js';
import type { PriceBook } from '../../../domain/pricing/priceBook.js';
import { sweepTraces } from '../../../usecases/events/traceSweep.js';
import type { TestApi, TestOrganization } from '../../support/api.js';
import { aSpan, aTrace } from './requests.js';

/** The text that `said` finds in a stored call. */
export const WORD = 'forbidden-word';

/** A span of a call, as a test reports it. */
export interface Told {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  responseId?: string;
  model?: string;
  input?: number | undefined;
  output?: number | undefined;
  tier?: string;
  costUsd?: number | undefined;
  text?: string;
  project?: string;
  startMs?: number;
}

const START_MS = Date.now() - 3_600_000;

function spanOf(told: Told): unknown {
  const start = BigInt(START_MS + (told.startMs ?? 0)) * 1_000_000n;
  return aSpan(
    {
      'gen_ai.request.model': told.model ?? 'gpt-4o',
      'gen_ai.usage.input_tokens': 'input' in told ? told.input : 100,
      'gen_ai.usage.output_tokens': 'output' in told ? told.output : 50,
      'gen_ai.openai.response.service_tier': told.tier,
      'gen_ai.response.id': told.responseId,
      'gen_ai.usage.cost': told.costUsd,
      'gen_ai.input.messages': told.text,
      project_id: told.project,
    },
    {
      traceId: told.traceId,
      spanId: told.spanId,
      ...(told.parentSpanId === undefined ? {} : { parentSpanId: told.parentSpanId }),
      startTimeUnixNano: String(start),
      endTimeUnixNano: String(start + 1_000_000_000n),
    },
  );
}

export interface StoredAlert {
  id: string;
  event_id: string;
  policy_type: string;
  merged_into: string | null;
  project_id: string | null;
  subject_id: string;
  cents: number | null;
}

export interface StoredCall {
  id: string;
  superseded_by: string | null;
  model: string;
  project_id: string | null;
  cents: number | null;
  said: boolean;
  prompt_hash: string | null;
}

export interface Message {
  id: string;
  type: string;
  data: { alert_id: string; event_id: string };
}

/** Calls that are reported to a server in spans, and the resulting events and alerts. */
export class MultiReportCalls {
  readonly #api: TestApi;
  readonly #prices: PriceBook;

  private constructor(api: TestApi, prices: PriceBook) {
    this.#api = api;
    this.#prices = prices;
  }

  static async of(api: TestApi): Promise<MultiReportCalls> {
    return new MultiReportCalls(api, await loadPriceBook(api.database.database));
  }

  /** Sends the spans in one request. */
  async tell(org: TestOrganization, ...spans: Told[]): Promise<void> {
    const { status } = await this.#api.post('/v1/traces', aTrace(...spans.map(spanOf)), org.ingestKey);
    expect(status).toBe(202);
  }

  /** Sweeps until every span was visited, because transactions of other databases of the cluster delay the sweep. */
  async sweep(): Promise<void> {
    for (;;) {
      await this.sweepOnce();
      const { rows } = await this.#api.database.superuser.query<{ done: boolean }>(
        'select swept_xid > (select coalesce(max(ingest_xid), 0) from call_spans) as done from sweep_state',
      );
      if (rows[0]?.done) return;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  async storedAlerts({ orgId }: TestOrganization): Promise<StoredAlert[]> {
    const { rows } = await this.#api.database.superuser.query(
      `select id, event_id, policy_type, merged_into, project_id, subject_id, (details->>'cost_cents')::int as cents
       from alerts where org_id = $1 order by created_at, id`,
      [orgId],
    );
    return rows;
  }

  async storedCalls({ orgId }: TestOrganization): Promise<StoredCall[]> {
    const { rows } = await this.#api.database.superuser.query(
      `select e.id, e.superseded_by, e.model, e.project_id, e.prompt_hash::text as prompt_hash,
         case when e.cost_source = 'unpriced' then null else (e.cost_usd * 100)::float8 end as cents,
         coalesce(strpos(p.payload::text, $2) > 0, false) as said
       from events e left join event_payloads p on p.org_id = e.org_id and p.timestamp = e.timestamp and p.event_id = e.id
       where e.org_id = $1`,
      [orgId, WORD],
    );
    return rows;
  }

  /** An endpoint of the organization for all messages; no worker delivers to it. */
  async wantAlerts({ orgId }: TestOrganization): Promise<void> {
    await this.#api.database.superuser.query(
      `with moved as (update organizations set rules_revision = rules_revision + 1 where id = $1)
       insert into webhook_endpoints (org_id, id, url, description, status, ciphertext, secret_key_id, created_by)
       values ($1, $2, 'https://receiver.example/', '', 'active', '\\x00', 'k1', 'test')`,
      [orgId, randomUUID()],
    );
  }

  async messagesOf({ orgId }: TestOrganization): Promise<Message[]> {
    const { rows } = await this.#api.database.superuser.query(
      `select m.id, m.body, (select count(*)::int from webhook_deliveries d where d.org_id = m.org_id and d.message_id = m.id) as deliveries
       from webhook_messages m where org_id = $1 order by created_at, id`,
      [orgId],
    );
    expect(rows.every(({ deliveries }) => deliveries === 1)).toBe(true);
    return rows.map(({ id, body }) => ({ id, ...JSON.parse(body) }));
  }

  /** The invariants of call reports, however they arrive. */
  async checkAlerts(org: TestOrganization): Promise<void> {
    const events = await this.storedCalls(org);
    const byId = new Map(events.map((event) => [event.id, event]));
    const standsFor = (id: string): string => {
      const next = byId.get(id)?.superseded_by;
      return next ? standsFor(next) : id;
    };
    const alerts = await this.storedAlerts(org);
    const standing = alerts.filter(({ merged_into }) => merged_into === null);
    for (const { event_id, subject_id, project_id } of standing) {
      const event = byId.get(event_id) as StoredCall;
      expect(event.superseded_by).toBeNull();
      expect([subject_id, project_id]).toEqual([`evt_${event_id.replaceAll('-', '')}`, event.project_id]);
    }
    for (const { merged_into, policy_type, event_id } of alerts) {
      if (merged_into === null) continue;
      const target = standing.find(({ id }) => id === merged_into) as StoredAlert;
      expect([target.policy_type, standsFor(event_id)]).toEqual([policy_type, target.event_id]);
    }
    for (const live of events.filter(({ superseded_by }) => superseded_by === null)) {
      const tellings = events.filter(({ id }) => standsFor(id) === live.id);
      const of = (type: string) =>
        standing.filter(({ event_id, policy_type }) => event_id === live.id && policy_type === type);
      expect(of('banned_patterns')).toHaveLength(tellings.some(({ said }) => said) ? 1 : 0);
      expect(of('approved_models').length).toBeLessThanOrEqual(
        tellings.some(({ model }) => model !== 'gpt-4o') ? 1 : 0,
      );
      if (live.model !== 'gpt-4o') expect(of('approved_models')).toHaveLength(1);
      const costly = of('approval_required_threshold_cents');
      expect(costly.length).toBeLessThanOrEqual(1);
      if (live.cents !== null && live.cents >= 5) expect(costly).toHaveLength(1);
      const hashes = tellings.flatMap(({ prompt_hash }) =>
        prompt_hash === null ? [] : [BigInt(prompt_hash)],
      );
      expect(BigInt(live.prompt_hash ?? 0)).toBe(hashes.reduce((a, b) => (b < a ? b : a), hashes[0] ?? 0n));
    }
    // Every alert was sent once, and no message is about a missing one.
    const told = (await this.messagesOf(org)).map(({ id }) => id);
    expect(told.sort()).toEqual(alerts.map(({ id }) => id).sort());
  }

  sweepOnce() {
    return sweepTraces(this.#api.database.database, { of: async () => this.#prices });
  }
}
