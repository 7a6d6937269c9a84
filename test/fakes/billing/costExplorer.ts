/**
 * A loopback AWS Cost Explorer: GetCostAndUsage and GetDimensionValues, with the documented rules. Requests must be
 * signed (Signature Version 4, computed independently here), at most two groups are permitted, only the current month
 * and thirteen before it are available, every answer costs a cent, and errors have status 400.
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { sumDecimals } from '../../../lab/bills/exactJson.js';
import { createBodyServer } from '../../support/bodyServer.js';

/** A line of the bill. Decimals as they appear in the answer. */
export interface AwsCharge {
  /** `YYYY-MM-DD` */
  day: string;
  /** RECORD_TYPE, e.g. `Usage`. */
  recordType: string;
  service: string;
  usageType: string;
  account: string;
  cost: string;
  net?: string;
  quantity: string;
  /** `N/A` where absent. */
  unit?: string;
}

export interface AwsTruth {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken?: string;
  charges: readonly AwsCharge[];
  /** Days before this one are final. */
  finalBefore: string;
  /** Actions that the key may not call. */
  denied?: readonly string[];
}

export interface AwsRequest {
  action: string;
  body: AnyJson;
  status: number;
}

export interface AwsFake {
  origin: string;
  requests: AwsRequest[];
  /** Dollars that Amazon would charge for the requests so far. */
  costUsd(): number;
  setTruth(truth: AwsTruth): void;
  /** The next answer is this error of AWS's. */
  failNext(type: string, status?: number): void;
  /** Groups of one answer at most. */
  limitGroups(groups: number): void;
  /** Invalidates all issued page tokens. */
  forgetPages(): void;
  close(): Promise<void>;
}

// biome-ignore lint/suspicious/noExplicitAny: bodies of requests, checked field by field
type AnyJson = any;

class Refused extends Error {
  constructor(
    readonly type: string,
    readonly status = 400,
  ) {
    super(type);
  }
}

const SKEW_SECONDS = 300;
const GROUPS_MAX = 2;
const DIMENSIONS: Readonly<Record<string, (charge: AwsCharge) => string>> = {
  SERVICE: (charge) => charge.service,
  USAGE_TYPE: (charge) => charge.usageType,
  LINKED_ACCOUNT: (charge) => charge.account,
  RECORD_TYPE: (charge) => charge.recordType,
};
const METRICS: readonly string[] = ['UnblendedCost', 'NetUnblendedCost', 'UsageQuantity', 'BlendedCost'];

export async function startCostExplorer(options: {
  truth: AwsTruth;
  nowSeconds: () => number;
  region?: string;
}): Promise<AwsFake> {
  let { truth } = options;
  let groupsMax = 1_000;
  let generation = 0;
  let failure: Refused | undefined;
  const requests: AwsRequest[] = [];
  const answer = (action: string, body: AnyJson): object => {
    if (truth.denied?.includes(action)) throw new Refused('AccessDeniedException');
    if (failure) {
      const error = failure;
      failure = undefined;
      throw error;
    }
    if (action === 'GetDimensionValues') return dimensionValues(truth, body);
    if (action === 'GetCostAndUsage')
      return costAndUsage(truth, body, options.nowSeconds(), groupsMax, generation);
    throw new Refused('UnknownOperationException');
  };
  const server = createBodyServer((incoming, outgoing, bytes) => {
    const text = bytes.toString('utf8');
    const action = String(incoming.headers['x-amz-target'] ?? '').replace('AWSInsightsIndexService.', '');
    let body: AnyJson;
    try {
      checkSignature(incoming, text, truth, options.region ?? 'us-east-1', options.nowSeconds());
      if (incoming.headers['content-type'] !== 'application/x-amz-json-1.1')
        throw new Refused('SerializationException');
      body = JSON.parse(text);
      send(outgoing, 200, answer(action, body));
      requests.push({ action, body, status: 200 });
    } catch (error) {
      const refused = error instanceof Refused ? error : new Refused('InternalServerError', 500);
      requests.push({ action, body, status: refused.status });
      send(outgoing, refused.status, {
        __type: `com.amazonaws.ce#${refused.type}`,
        message: `the request of ${truth.secretAccessKey} is refused`,
      });
    }
  });
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    costUsd: () => requests.length / 100,
    setTruth: (next) => {
      truth = next;
    },
    failNext: (type, status) => {
      failure = new Refused(type, status);
    },
    limitGroups: (groups) => {
      groupsMax = groups;
    },
    forgetPages: () => {
      generation += 1;
    },
    close: () => {
      server.closeAllConnections();
      return new Promise((closed) => server.close(() => closed()));
    },
  };
}

function send(outgoing: ServerResponse, status: number, body: object): void {
  const bytes = JSON.stringify(body);
  outgoing.writeHead(status, {
    'content-type': 'application/x-amz-json-1.1',
    'x-amzn-requestid': createHash('sha256').update(bytes).digest('hex').slice(0, 32),
  });
  outgoing.end(bytes);
}

const hash = (text: string) => createHash('sha256').update(text).digest('hex');
const mac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest();
const AUTHORIZATION =
  /^AWS4-HMAC-SHA256 Credential=([A-Z0-9]+)\/(\d{8})\/([a-z0-9-]+)\/ce\/aws4_request, SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})$/;

/** Checks the signature as AWS documents it, from the request as it arrived. */
function checkSignature(
  incoming: IncomingMessage,
  body: string,
  truth: AwsTruth,
  region: string,
  nowSeconds: number,
): void {
  const header = incoming.headers.authorization;
  if (header === undefined) throw new Refused('MissingAuthenticationTokenException');
  const [, keyId, day = '', of = '', signed = '', signature = ''] = AUTHORIZATION.exec(header) ?? [];
  if (signature === '') throw new Refused('IncompleteSignatureException');
  if (keyId !== truth.accessKeyId) throw new Refused('UnrecognizedClientException');
  if (incoming.headers['x-amz-security-token'] !== truth.sessionToken)
    throw new Refused('ExpiredTokenException');
  const time = String(incoming.headers['x-amz-date']);
  const sentSeconds =
    Date.parse(time.replace(/^(....)(..)(..)T(..)(..)(..)Z$/, '$1-$2-$3T$4:$5:$6Z')) / 1_000;
  if (Math.abs(sentSeconds - nowSeconds) > SKEW_SECONDS || !time.startsWith(day) || of !== region)
    throw new Refused('InvalidSignatureException');
  const names = signed.split(';');
  const needed = ['host', 'x-amz-date', 'x-amz-target', 'content-type'];
  if (truth.sessionToken !== undefined) needed.push('x-amz-security-token');
  if (!needed.every((name) => names.includes(name))) throw new Refused('InvalidSignatureException');
  const canonical = `POST\n/\n\n${names.map((name) => `${name}:${String(incoming.headers[name]).trim()}\n`).join('')}\n${signed}\n${hash(body)}`;
  const text = `AWS4-HMAC-SHA256\n${time}\n${day}/${region}/ce/aws4_request\n${hash(canonical)}`;
  const key = mac(mac(mac(mac(`AWS4${truth.secretAccessKey}`, day), region), 'ce'), 'aws4_request');
  const expected = mac(key, text);
  if (!timingSafeEqual(expected, Buffer.from(signature, 'hex')))
    throw new Refused('InvalidSignatureException');
}

function dimensionValues(truth: AwsTruth, body: AnyJson): object {
  const of = DIMENSIONS[body.Dimension];
  if (!of) throw new Refused('ValidationException');
  const values = [...new Set(chargesIn(truth, body.TimePeriod).map(of))]
    .filter((value) => value.includes(body.SearchString ?? ''))
    .sort();
  return {
    DimensionValues: values.map((Value) => ({ Value, Attributes: {} })),
    ReturnSize: values.length,
    TotalSize: values.length,
  };
}

function chargesIn(truth: AwsTruth, period: AnyJson): AwsCharge[] {
  if (
    !/^\d{4}-\d\d-\d\d$/.test(period?.Start) ||
    !/^\d{4}-\d\d-\d\d$/.test(period?.End) ||
    period.Start >= period.End
  )
    throw new Refused('ValidationException');
  return truth.charges.filter(({ day }) => day >= period.Start && day < period.End);
}

function costAndUsage(
  truth: AwsTruth,
  body: AnyJson,
  nowSeconds: number,
  groupsMax: number,
  generation: number,
): object {
  const groupBy: AnyJson[] = body.GroupBy ?? [];
  if (
    groupBy.length > GROUPS_MAX ||
    groupBy.some(({ Type, Key }) => Type !== 'DIMENSION' || !DIMENSIONS[Key])
  )
    throw new Refused('ValidationException');
  const metrics: string[] = body.Metrics ?? [];
  if (
    body.Granularity !== 'DAILY' ||
    metrics.length === 0 ||
    metrics.some((metric) => !METRICS.includes(metric))
  )
    throw new Refused('ValidationException');
  const today = new Date(nowSeconds * 1_000);
  const oldest = new Date(Date.UTC(today.getUTCFullYear(), today.getUTCMonth() - 13, 1))
    .toISOString()
    .slice(0, 10);
  if (body.TimePeriod?.Start < oldest) throw new Refused('ValidationException');
  const request = hash(JSON.stringify({ ...body, NextPageToken: undefined }));
  const charges = chargesIn(truth, body.TimePeriod).filter((charge) => matches(charge, body.Filter));
  const cells = cellsOf(charges, groupBy, metrics);
  const from = startOf(body.NextPageToken, request, generation);
  const days = daysOf(body.TimePeriod);
  const to = from + groupsMax;
  const shown = cells.slice(from, to);
  const isLast = to >= cells.length;
  // A page lists the days of its groups; the first begins with the period, the last extends to its end.
  const firstDay = from === 0 ? days[0] : shown[0]?.day;
  const lastDay = isLast ? days.at(-1) : shown.at(-1)?.day;
  return {
    GroupDefinitions: groupBy,
    ResultsByTime: days
      .filter((day) => day >= (firstDay ?? '') && day <= (lastDay ?? ''))
      .map((day) => ({
        TimePeriod: { Start: day, End: nextDay(day) },
        Total: {},
        Groups: shown.filter((cell) => cell.day === day).map(({ Keys, Metrics }) => ({ Keys, Metrics })),
        Estimated: day >= truth.finalBefore,
      })),
    DimensionValueAttributes: [],
    ...(isLast ? {} : { NextPageToken: Buffer.from(`${generation} ${request} ${to}`).toString('base64') }),
  };
}

function startOf(token: string | undefined, request: string, generation: number): number {
  if (token === undefined) return 0;
  const [of, same, at] = Buffer.from(token, 'base64').toString('utf8').split(' ');
  if (Number(of) !== generation) throw new Refused('InvalidNextTokenException');
  if (same !== request) throw new Refused('RequestChangedException');
  return Number(at);
}

function matches(charge: AwsCharge, filter: AnyJson): boolean {
  if (filter === undefined) return true;
  if (filter.And) return filter.And.every((one: AnyJson) => matches(charge, one));
  if (filter.Not) return !matches(charge, filter.Not);
  const { Key, Values } = filter.Dimensions ?? {};
  const of = DIMENSIONS[Key];
  if (!of || !Array.isArray(Values) || Values.length === 0) throw new Refused('ValidationException');
  return Values.includes(of(charge));
}

interface Cell {
  day: string;
  Keys: string[];
  Metrics: Record<string, { Amount: string; Unit: string }>;
}

function cellsOf(charges: readonly AwsCharge[], groupBy: AnyJson[], metrics: readonly string[]): Cell[] {
  const groups = new Map<string, { day: string; Keys: string[]; charges: AwsCharge[] }>();
  for (const charge of charges) {
    const Keys = groupBy.map(({ Key }) => DIMENSIONS[Key]?.(charge) ?? '');
    const name = JSON.stringify([charge.day, ...Keys]);
    const group = groups.get(name) ?? { day: charge.day, Keys, charges: [] };
    group.charges.push(charge);
    groups.set(name, group);
  }
  return [...groups]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, { day, Keys, charges: members }]) => ({
      day,
      Keys,
      Metrics: Object.fromEntries(metrics.map((metric) => [metric, metricOf(metric, members)])),
    }));
}

function metricOf(metric: string, charges: readonly AwsCharge[]): { Amount: string; Unit: string } {
  const of = (charge: AwsCharge) =>
    metric === 'UsageQuantity'
      ? charge.quantity
      : metric === 'NetUnblendedCost'
        ? (charge.net ?? charge.cost)
        : charge.cost;
  const units = new Set(charges.map(({ unit }) => unit ?? 'N/A'));
  const unit = units.size === 1 ? ([...units][0] as string) : 'N/A';
  return { Amount: sumDecimals(charges.map(of)), Unit: metric === 'UsageQuantity' ? unit : 'USD' };
}

function daysOf(period: { Start: string; End: string }): string[] {
  const days: string[] = [];
  for (let day = period.Start; day < period.End; day = nextDay(day)) days.push(day);
  return days;
}

function nextDay(day: string): string {
  return new Date(Date.parse(`${day}T00:00:00Z`) + 86_400_000).toISOString().slice(0, 10);
}
