/** The planted faults with their dollars, computed from the calls and the demo's own prices alone. */
import type { TokenClass } from '../bills/results.js';
import {
  type BilledLine,
  billedLines,
  CREDIT,
  firstReport,
  type RateFault,
  webSearchPico,
} from './billed.js';
import type { Calendar } from './calendar.js';
import { type DemoCall, listCost } from './calls.js';
import { STRAY_KEY } from './company.js';
import { isReported } from './events.js';
import { findingsOf, type PlantedFinding } from './findings.js';
import { type DemoProvider, priceOf } from './prices.js';
import { covers, type Days, SCHEDULE } from './schedule.js';
import { type TrafficFindings, trafficFindingsOf, type WantedFindings, wantedFindingsOf } from './wanted.js';

/** Tokens charged at a wrong rate over consecutive days. */
export interface PlantedRate {
  kind: RateFault;
  provider: DemoProvider;
  /** The model's name in Trueup. */
  model: string;
  tokenClass: TokenClass;
  /** null: OpenAI, whose bill has no separate batch line. */
  isBatch: boolean | null;
  isLong: boolean;
  days: Days;
  billedPico: bigint;
  rightPico: bigint;
  excessPico: bigint;
}

/** A model's day on which the bill and the reported events differ. */
export interface PlantedGap {
  kind: RateFault | 'doubled_day' | 'missing_window' | 'unknown_key';
  provider: DemoProvider;
  model: string;
  offset: number;
  /** Billed dollars that the events do not explain, and below their parts by rate and by quantity. */
  gapPico: bigint;
  ratePico: bigint;
  volumePico: bigint;
  /** Whether any reported event matches the charge. */
  hasEvents: boolean;
}

export interface AnswerKey {
  rates: PlantedRate[];
  gaps: PlantedGap[];
  /** The same faults as findings. */
  findings: PlantedFinding[];
  unlabelled: { events: number; pico: bigint };
  runawayLoop: { sessionId: string; events: number; pico: bigint };
  staging: { keyId: string; events: number; pico: bigint };
  secrets: { requestIds: string[] };
  strayKey: { keyId: string; pico: bigint };
  credit: { offset: number; pico: bigint };
  toolFees: Record<DemoProvider, bigint>;
  restated: { offset: number; addedPico: bigint };
  wanted: WantedFindings;
  /** Figures that depend on the weekends. */
  ofTraffic: TrafficFindings & {
    /** The contract's discount on the list prices of everything billed. */
    contract: { discountPico: bigint };
  };
}

const sum = (values: readonly bigint[]): bigint => values.reduce((total, value) => total + value, 0n);
const costOf = (calls: readonly DemoCall[]): bigint => sum(calls.map((call) => call.pico));

export function answerKeyOf(calls: readonly DemoCall[], calendar: Calendar): AnswerKey {
  const lines = billedLines(calls);
  const unlabelled = calls.filter((call) => isReported(call) && call.team === null);
  const loop = calls.filter(({ sessionId }) => sessionId === 'sess-runaway-loop');
  const staging = calls.filter(({ environment }) => environment === 'staging');
  const openai = calls.filter(({ provider }) => provider === 'openai');
  const gaps = gapsOf(calls, lines);
  return {
    rates: ratesOf(lines),
    gaps,
    findings: findingsOf(gaps),
    unlabelled: { events: unlabelled.length, pico: costOf(unlabelled) },
    runawayLoop: { sessionId: 'sess-runaway-loop', events: loop.length, pico: costOf(loop) },
    staging: { keyId: staging[0]?.key.id ?? '', events: staging.length, pico: costOf(staging) },
    secrets: {
      requestIds: calls
        .filter(({ prompt }) => /demo-secret|demo-battery/.test(prompt ?? ''))
        .map(({ id }) => id),
    },
    strayKey: { keyId: STRAY_KEY.id, pico: costOf(calls.filter(({ isStray }) => isStray)) },
    credit: { offset: CREDIT.offset, pico: CREDIT.pico },
    toolFees: {
      openai: sum(calendar.offsets().map((offset) => webSearchPico('openai', offset))),
      anthropic: sum(calendar.offsets().map((offset) => webSearchPico('anthropic', offset))),
    },
    restated: {
      offset: SCHEDULE.restated.first,
      addedPico: costOf(openai) - costOf(firstReport(openai)),
    },
    wanted: wantedFindingsOf(calls),
    ofTraffic: {
      ...trafficFindingsOf(calls),
      contract: { discountPico: sum(calls.map((call) => listCost(call) - call.pico)) },
    },
  };
}

/** A day without usage of the class ends a run of days, since it has no wrong charge. */
function ratesOf(lines: readonly BilledLine[]): PlantedRate[] {
  const open = new Map<string, PlantedRate>();
  const rates: PlantedRate[] = [];
  for (const line of [...lines].sort((a, b) => a.offset - b.offset)) {
    if (line.fault === undefined) continue;
    const isBatch = line.provider === 'openai' ? null : line.isBatch;
    const id = [line.fault, line.model, line.tokenClass, isBatch, line.isLong].join('|');
    let rate = open.get(id);
    if (!rate || line.offset > rate.days.last + 1) {
      rate = newRate(line.fault, line, isBatch);
      open.set(id, rate);
      rates.push(rate);
    }
    rate.days.last = line.offset;
    rate.billedPico += line.billedPico;
    rate.rightPico += line.rightPico;
    rate.excessPico = rate.billedPico - rate.rightPico;
  }
  return rates;
}

function newRate(kind: RateFault, line: BilledLine, isBatch: boolean | null): PlantedRate {
  return {
    kind,
    provider: line.provider,
    model: priceOf(line.model).alias,
    tokenClass: line.tokenClass,
    isBatch,
    isLong: line.isLong,
    days: { first: line.offset, last: line.offset },
    billedPico: 0n,
    rightPico: 0n,
    excessPico: 0n,
  };
}

function gapsOf(calls: readonly DemoCall[], lines: readonly BilledLine[]): PlantedGap[] {
  const gaps = new Map<string, PlantedGap>();
  const add = (
    kind: PlantedGap['kind'],
    of: { provider: DemoProvider; model: string; offset: number },
    parts: { rate?: bigint; volume?: bigint },
    hasEvents = true,
  ) => {
    const model = priceOf(of.model).alias;
    const id = `${of.offset}|${model}`;
    const { provider, offset } = of;
    const gap = gaps.get(id) ?? {
      kind,
      provider,
      model,
      offset,
      gapPico: 0n,
      ratePico: 0n,
      volumePico: 0n,
      hasEvents,
    };
    gap.ratePico += parts.rate ?? 0n;
    gap.volumePico += parts.volume ?? 0n;
    gap.gapPico = gap.ratePico + gap.volumePico;
    gaps.set(id, gap);
  };
  for (const line of lines) {
    if (line.fault !== undefined) add(line.fault, line, { rate: line.billedPico - line.rightPico });
    if (line.provider === 'openai' && covers(SCHEDULE.doubled, line.offset))
      add('doubled_day', line, { volume: line.rightPico });
  }
  for (const call of calls) {
    if (call.isStray) add('unknown_key', call, { volume: call.pico }, false);
    else if (!isReported(call)) add('missing_window', call, { volume: call.pico });
  }
  return [...gaps.values()];
}
