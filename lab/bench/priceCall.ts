/**
 * Measures the pricing of one call, over every model of the shipped list and the tiers and lengths that clients
 * send. `npx tsx lab/bench/priceCall.ts`; ratio = time of a call ÷ the 2 µs that ingest allows for it.
 */
import { readFileSync } from 'node:fs';
import { type CallToPrice, priceCall } from '../../domain/pricing/cost.js';
import { PriceBook } from '../../domain/pricing/priceBook.js';
import { readPriceFile } from '../../domain/pricing/priceFile.js';

const CALLS = 500_000;
const ROUNDS = 5;
const BUDGET_NS = 2_000;
/** 2026-11-20 */
const AT_MICROS = 1_795_132_800_000_000n;

const list = readPriceFile(
  JSON.parse(readFileSync(new URL('../../data/prices.json', import.meta.url), 'utf8')),
);
const buildStarted = performance.now();
const book = PriceBook.from(
  list.entries.map(({ model }) => ({ ...model, updatedAtMicros: 0n })),
  list.entries.flatMap(({ model, periods }) =>
    periods.map((period) => ({ ...period, ...idOf(model), id: '', recordedAtMicros: 0n })),
  ),
);
const buildMs = performance.now() - buildStarted;

function idOf({ provider, model }: (typeof list.entries)[number]['model']) {
  return { provider, model };
}

const TIERS = [null, 'default', 'flex', 'priority', null, 'auto', null, 'batch'];

const calls = list.entries.map(({ model }, index): CallToPrice => {
  const input = index % 5 === 0 ? 300_000 : 1_200;
  return {
    biller: model.provider,
    model: model.model,
    atMicros: AT_MICROS,
    isBatch: index % 8 === 0,
    serviceTier: TIERS[index % TIERS.length] ?? null,
    usage: {
      input,
      cacheRead: index % 2 === 0 ? 1_000 : 0,
      cacheCreation: index % 3 === 0 ? 500 : 0,
      cacheCreation5m: null,
      cacheCreation1h: null,
      output: 300,
      inputAudio: 0,
      outputAudio: 0,
      reasoning: 100,
      cached: 0,
    },
  };
});

function round(): number {
  const started = process.hrtime.bigint();
  let priced = 0;
  for (let i = 0; i < CALLS; i += 1) {
    const call = calls[i % calls.length];
    if (call && priceCall(book, call).computedPico !== null) priced += 1;
  }
  if (priced !== CALLS) throw new Error(`${CALLS - priced} calls found no price`);
  return Number(process.hrtime.bigint() - started) / CALLS;
}

round();
const times = Array.from({ length: ROUNDS }, round).sort((a, b) => a - b);
const median = times[Math.floor(ROUNDS / 2)] ?? 0;
process.stdout.write(`book of ${book.models.length} models built in ${buildMs.toFixed(1)} ms\n`);
process.stdout.write(`priceCall ${median.toFixed(0)} ns a call, ${ROUNDS} rounds of ${CALLS} calls\n`);
process.stdout.write(`ratio=${(median / BUDGET_NS).toFixed(2)}\n`);
