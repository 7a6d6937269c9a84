import { LRUCache } from 'lru-cache';
import type { Database } from '../../db/client.js';
import { LimitError, type LimitRules, type Rate, TokenBucket } from '../../domain/access/rate.js';
import { DomainError } from '../../domain/errors.js';
import { describeRun, isRunKind, type RunKind } from '../../domain/runs/runKinds.js';
import type { AddressCharge, ApiPeers } from '../../platform/apiPeers.js';
import type { Metrics } from '../../platform/metrics.js';
import type { Sender } from '../../usecases/access/keyUses.js';
import { ExportSlots, leaseTokens } from '../../usecases/access/sharedLimits.js';
import type { OpenRunLimit } from '../../usecases/runs/openRun.js';
import { orgDbOf } from '../../usecases/useCaseDeps.js';
import {
  type Caller,
  type Endpoint,
  type EndpointResponse,
  type LimitClass,
  limitClassOf,
} from '../endpoint.js';
import type { PipelineContext } from '../pipeline/pipelineContext.js';
import { Admission, whenAnswered } from './admission.js';
import { ClientAddresses } from './clientAddress.js';
import { RateLimiter, type RateStore, STORE_LIMIT_MS, type Verdict } from './rateLimiter.js';
import { noteConcurrency, noteRate, wholeSeconds } from './rateLimitFields.js';

/** Client addresses in the cache, by latest use. */
const ADDRESSES_MAX = 20_000;
/** Retry-After of a refused export or run, seconds: the usual least duration of one. */
const BUSY_RETRY_SECONDS = 5;
/** The subject of the organization's bucket; the other subjects are key ids. */
const ORGANIZATION = 'organization';

type RateName = {
  [N in keyof LimitRules]: LimitRules[N] extends Rate ? N : never;
}[keyof LimitRules];

interface Policy {
  /** The policy's name in RateLimit fields and problems. */
  name: string;
  rate: RateName;
}

/** The policy that counts a key's requests of each class. */
const KEY_POLICIES: Record<Exclude<LimitClass, 'public' | RunKind>, Policy> = {
  read: { name: 'default', rate: 'reads' },
  export: { name: 'default', rate: 'reads' },
  write: { name: 'writes', rate: 'writes' },
  ingest: { name: 'ingest', rate: 'ingest' },
};
const ITEMS: Policy = { name: 'ingest-items', rate: 'ingestItems' };
const PUBLIC: Policy = { name: 'public', rate: 'publicRequests' };
const FAILED: Policy = { name: 'failed-authentication', rate: 'failedAuthentication' };
/** The setting that limits the open runs of each kind. */
const OPEN_MAX = { runs: 'openRunsMax', imports: 'openImportsMax', invoices: 'openInvoicesMax' } as const;
const EXPORTS = 'exports';
const DOCUMENTS = /^\/(?:openapi\.json|docs)(?:\/.*)?$/;

export interface RequestLimitsOptions {
  /** undefined: no limits. */
  rules: LimitRules | undefined;
  /** Proxies whose X-Forwarded-For is trusted. */
  trustedProxies: readonly string[];
  database: Database;
  /** The other processes that serve the same addresses. */
  peers: Pick<ApiPeers, 'tellCharge' | 'onCharge'>;
  metrics: Pick<
    Metrics,
    'rateLimited' | 'failedAuthentications' | 'rateStoreFailures' | 'requestsInFlight' | 'requestsShed'
  >;
  /** Monotonic clock, milliseconds. */
  nowMs: () => number;
  /** Longest wait for the shared buckets, milliseconds; absent: the limiter's default. */
  storeLimitMs?: number | undefined;
  /** Requests in progress at once; absent: Admission's default. */
  requestsMax?: Record<'ingest' | 'other', number> | undefined;
  onStoreFailure: (error: unknown) => void;
}

/** The counts taken for a request that starts a run or an export. */
export interface Begun {
  /** The limit for a run that the handler starts; undefined: it starts none, or there is no limit. */
  runLimit: OpenRunLimit | undefined;
  /** Called with the answer at the end of the request; without one when the request failed. */
  finish(response?: EndpointResponse): void;
}
const NOTHING_BEGUN: Begun = { runLimit: undefined, finish: () => undefined };

/** All limits of requests, one method for each step of serving a request. Each refusal is a LimitError, 429. */
export class RequestLimits {
  readonly #options: RequestLimitsOptions;
  readonly #limiter: RateLimiter;
  readonly #slots: ExportSlots;
  readonly #addresses: ClientAddresses;
  readonly #admission: Admission;
  readonly #byAddress = new LRUCache<string, TokenBucket>({ max: ADDRESSES_MAX });

  constructor(options: RequestLimitsOptions) {
    this.#options = options;
    const { database, nowMs, metrics } = options;
    const onStoreFailure = (error: unknown) => {
      metrics.rateStoreFailures.inc();
      options.onStoreFailure(error);
    };
    const lease: RateStore['lease'] = (bucket, ask) => leaseTokens({ database }, bucket, ask);
    const storeLimitMs = options.storeLimitMs ?? STORE_LIMIT_MS;
    this.#limiter = new RateLimiter({ store: { lease }, storeLimitMs, nowMs, onStoreFailure });
    this.#slots = new ExportSlots(onStoreFailure);
    this.#addresses = new ClientAddresses(options.trustedProxies);
    this.#admission = new Admission(metrics, options.requestsMax);
    options.peers.onCharge((charge) => this.#takeElsewhere(charge));
  }

  /** Admits a request while there is room; requests to public paths are counted by client address. */
  admit(ctx: PipelineContext, next: () => Promise<unknown>): Promise<unknown> {
    this.enter(ctx);
    if (DOCUMENTS.test(ctx.path)) this.chargePublic(ctx);
    return next();
  }

  /** Admits a request until its answer is sent. Error: service_unavailable. */
  enter(ctx: PipelineContext): void {
    this.#admission.enter(ctx);
  }

  /** Updates the bytes of a body that stores calls. Error: service_unavailable. */
  holdBody(ctx: PipelineContext, bytes: number): void {
    this.#admission.holdBody(ctx, bytes);
  }

  /**
   * The error of a failed authentication: the failure itself, or 429 once its address has failed too often. A valid key
   * is never refused for failures of others behind its address (docs/decisions/0031).
   */
  afterFailedAuthentication(ctx: PipelineContext, error: unknown): unknown {
    const { rules, metrics } = this.#options;
    if (!(error instanceof DomainError) || error.code !== 'unauthenticated') return error;
    const refusal =
      rules &&
      this.#takeOfAddress(ctx, FAILED, rules.failedAuthentication, 'too many failed authentications');
    metrics.failedAuthentications.inc({ outcome: refusal ? 'throttled' : 'refused' });
    return refusal ?? error;
  }

  /** The sender of a request, by the client's IPv4 address or the /64 of its IPv6 one. */
  senderOf({ req, state }: PipelineContext): Sender {
    return { address: this.#addresses.networkOf(req), requestId: String(state.requestId) };
  }

  /** Counts a request without a key by its client address. */
  chargePublic(ctx: PipelineContext): void {
    const { rules } = this.#options;
    if (!rules) return;
    const refusal = this.#takeOfAddress(ctx, PUBLIC, rules.publicRequests, 'too many requests without a key');
    if (refusal) throw refusal;
  }

  #takeOfAddress(ctx: PipelineContext, policy: Policy, rate: Rate, what: string): LimitError | undefined {
    const nowMs = this.#options.nowMs();
    const charge: AddressCharge = { policy: policy.name, network: this.#addresses.networkOf(ctx.req) };
    const bucket = this.#bucketOf(charge, rate);
    if (bucket.take(1, nowMs)) {
      this.#options.peers.tellCharge(charge);
      return undefined;
    }
    const waitSeconds = bucket.waitSeconds(1, nowMs);
    this.#options.metrics.rateLimited.inc({ class: policy.name });
    noteRate(ctx, policy.name, rate, { remaining: 0, waitSeconds });
    return refusalOf(policy.name, `${what} from this address: more than ${rateText(rate)}`, waitSeconds);
  }

  /** Counts a request that another process admitted. */
  #takeElsewhere(charge: AddressCharge): void {
    const policy = [FAILED, PUBLIC].find(({ name }) => name === charge.policy);
    const rate = policy && this.#options.rules?.[policy.rate];
    if (rate) this.#bucketOf(charge, rate).take(1, this.#options.nowMs());
  }

  #bucketOf({ policy, network }: AddressCharge, rate: Rate): TokenBucket {
    const id = `${policy} ${network}`;
    const bucket = this.#byAddress.get(id) ?? new TokenBucket(rate, this.#options.nowMs());
    this.#byAddress.set(id, bucket);
    return bucket;
  }

  /** Counts a request by its key, before its body is read. Synchronous while the instance holds tokens. */
  chargeKey(ctx: PipelineContext, caller: Caller, endpoint: Endpoint): void | Promise<void> {
    this.#admission.enterOrganization(ctx, caller.orgId);
    const { rules } = this.#options;
    const limitClass = limitClassOf(endpoint);
    if (!rules || limitClass === 'public') return;
    return this.#charge(ctx, caller, KEY_POLICIES[isRunKind(limitClass) ? 'write' : limitClass], 1);
  }

  /**
   * Counts a batch's items before any is stored. A batch larger than the whole limit passes when its bucket is full.
   */
  chargeItems(ctx: PipelineContext, caller: Caller, count: number): void | Promise<void> {
    if (!this.#options.rules || count === 0) return;
    return this.#charge(ctx, caller, ITEMS, count);
  }

  #charge(ctx: PipelineContext, caller: Caller, policy: Policy, cost: number): void | Promise<void> {
    const verdict = this.#take(ctx, caller, caller.keyId, policy, cost);
    if (verdict instanceof Promise) return verdict.then(refuse);
    refuse(verdict);
  }

  #take(
    ctx: PipelineContext,
    caller: Caller,
    subject: string,
    policy: Policy,
    cost: number,
  ): Judged | Promise<Judged> {
    const rate = (this.#options.rules as LimitRules)[policy.rate];
    const judge = (verdict: Verdict): Judged => {
      // The draft has no unit for items, so only a refusal names the items policy.
      if (policy !== ITEMS) noteRate(ctx, policy.name, rate, verdict);
      if (verdict.isGranted) return { isGranted: true, refusal: undefined };
      this.#options.metrics.rateLimited.inc({ class: policy.name });
      const whose = subject === ORGANIZATION ? 'the organization' : 'this key';
      const what = `${whose} sends more than ${rateText(rate)} (${policy.name})`;
      return { isGranted: false, refusal: refusalOf(policy.name, what, verdict.waitSeconds) };
    };
    const verdict = this.#limiter.take({ orgId: caller.orgId, subject, policy: policy.name }, rate, cost);
    return verdict instanceof Promise ? verdict.then(judge) : judge(verdict);
  }

  /**
   * Counts a run or an export that an organization starts. An export's slot is held until its answer is sent or its
   * client disconnects. A run over the limit is refused only when it would be stored, since an open run may be returned
   * instead. Nothing is counted when no run or export was started.
   */
  async begin(ctx: PipelineContext, caller: Caller, endpoint: Endpoint): Promise<Begun> {
    const { rules } = this.#options;
    const limitClass = limitClassOf(endpoint);
    if (rules && limitClass === 'export') await this.#holdExport(ctx, caller, rules.openExportsMax);
    if (!rules || !isRunKind(limitClass)) return NOTHING_BEGUN;
    const { startPolicy, limitedAs } = describeRun(limitClass);
    const policy: Policy = { name: startPolicy, rate: limitedAs };
    const max = rules[OPEN_MAX[limitedAs]];
    const verdict = await this.#take(ctx, caller, ORGANIZATION, policy, 1);
    const finish = (response?: EndpointResponse) => {
      if (!verdict.isGranted || (response && isBegun(response))) return;
      const bucket = { orgId: caller.orgId, subject: ORGANIZATION, policy: policy.name };
      this.#limiter.giveBack(bucket, rules[policy.rate], 1);
    };
    return { runLimit: { kind: limitClass, max, refusal: verdict.refusal }, finish };
  }

  async #holdExport(ctx: PipelineContext, caller: Caller, max: number): Promise<void> {
    const release = await this.#slots.take(orgDbOf(this.#options, caller.orgId), max);
    if (!release) {
      this.#options.metrics.rateLimited.inc({ class: EXPORTS });
      noteConcurrency(ctx, EXPORTS, max, 0);
      const underWay = `${max} ${max === 1 ? 'export' : 'exports'} of the organization`;
      throw refusalOf(EXPORTS, `${underWay} are under way: wait until one has ended`, BUSY_RETRY_SECONDS);
    }
    noteConcurrency(ctx, EXPORTS, max, Math.max(0, max - this.#slots.countHere(caller.orgId)));
    whenAnswered(ctx, release);
  }
}

interface Judged {
  isGranted: boolean;
  refusal: LimitError | undefined;
}

function refuse({ refusal }: Judged): void {
  if (refusal) throw refusal;
}

/** Whether an answer reports a new run or export, rather than an existing run or a repeat of an earlier answer. */
function isBegun({ status, body, headers }: EndpointResponse): boolean {
  const isExisting =
    typeof body === 'object' && body !== null && 'existing' in body && body.existing === true;
  const isMade = status === 202 || (status === 200 && headers?.['X-Report-Id'] !== undefined);
  return isMade && !isExisting && headers?.['Idempotency-Replayed'] === undefined;
}

function refusalOf(policy: string, sentence: string, waitSeconds: number): LimitError {
  const seconds = wholeSeconds(waitSeconds);
  return new LimitError([policy], `${sentence}; try again in ${seconds} s`, seconds);
}

/** A rate as text: `600 in 60 s`, with the burst where it differs from the quota. */
function rateText({ quota, windowSeconds, burst }: Rate): string {
  return `${quota} in ${windowSeconds} s${burst === quota ? '' : `, ${burst} at once`}`;
}
