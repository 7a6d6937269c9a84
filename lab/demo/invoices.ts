/** Invoices for the demo's bills; three of them have a fault that no bill shows. */
import { openaiLineItem } from '../bills/results.js';
import { type BilledLine, billedLines, isDoubled, webSearchPico } from './billed.js';
import type { Calendar } from './calendar.js';
import type { DemoCall } from './calls.js';
import { ORGANIZATION_NAME } from './company.js';
import type { DemoProvider } from './prices.js';
import { ANTHROPIC_WORDS } from './reports.js';
import { covers, type Days } from './schedule.js';

export interface DemoInvoiceLine {
  description: string;
  /** Tokens or searches; null: none are counted. */
  quantity: number | null;
  /** Pico-dollars. */
  ratePico: bigint | null;
  /** Whole cents. */
  pico: bigint;
}

export type InvoiceFault = 'line_twice' | 'wrong_tax' | 'month_twice';

export interface DemoInvoice {
  provider: DemoProvider;
  /** File name. */
  name: string;
  number: string;
  days: Days;
  firstDay: string;
  lastDay: string;
  issueDay: string;
  /** Creation time, Unix seconds. */
  createdSeconds: number;
  lines: DemoInvoiceLine[];
  subtotalPico: bigint;
  tax: { name: string; percent: string; pico: bigint } | null;
  totalPico: bigint;
  fault: InvoiceFault;
  /** The dollars of the fault; null: the whole invoice. */
  faultPico: bigint | null;
  customer: string;
}

const PICO_PER_CENT = 10_000_000_000n;
/**
 * Anthropic's days in these cycles have no other fault; OpenAI's invoice is not compared with days while its tax
 * is wrong.
 */
const CYCLES: Record<DemoProvider, Days> = {
  anthropic: { first: -88, last: -59 },
  openai: { first: -64, last: -35 },
};
const TAX = { name: 'Sales Tax - Texas', percent: '8.25' };
/** OpenAI's excess tax. */
const TAX_EXCESS_PICO = 120_000_000_000_000n;

const sum = (values: readonly bigint[]): bigint => values.reduce((total, value) => total + value, 0n);
const toCents = (pico: bigint): bigint => ((pico + PICO_PER_CENT / 2n) / PICO_PER_CENT) * PICO_PER_CENT;

export function demoInvoices(calls: readonly DemoCall[], calendar: Calendar): DemoInvoice[] {
  const anthropic = chargesOf('anthropic', calls);
  const openai = chargesOf('openai', calls);
  const search = anthropic.at(-1) as DemoInvoiceLine;
  const make = (
    provider: DemoProvider,
    number: string,
    lines: DemoInvoiceLine[],
    fault: InvoiceFault,
    faultPico: bigint | null,
  ): DemoInvoice => {
    const days = CYCLES[provider];
    const subtotalPico = sum(lines.map(({ pico }) => pico));
    const taxPico =
      provider === 'openai'
        ? toCents((subtotalPico * 825n) / 10_000n) + (fault === 'wrong_tax' ? TAX_EXCESS_PICO : 0n)
        : 0n;
    const issue = days.last + (fault === 'month_twice' ? 4 : 1);
    return {
      provider,
      name: `${provider}-invoice-${number}.pdf`,
      number,
      days,
      firstDay: calendar.dayText(days.first),
      lastDay: calendar.dayText(days.last),
      issueDay: calendar.dayText(issue),
      createdSeconds: calendar.startSeconds(issue),
      lines,
      subtotalPico,
      tax: provider === 'openai' ? { ...TAX, pico: taxPico } : null,
      totalPico: subtotalPico + taxPico,
      fault,
      faultPico,
      customer: ORGANIZATION_NAME,
    };
  };
  return [
    make('anthropic', '7C21D0A4-0003', [...anthropic, search], 'line_twice', search.pico),
    make('openai', 'B58E9F10-0012', openai, 'wrong_tax', TAX_EXCESS_PICO),
    make('anthropic', '7C21D0A4-0004', anthropic, 'month_twice', null),
  ];
}

/** A line for each model, class and rate of the cycle, as billed; web searches are last. */
function chargesOf(provider: DemoProvider, calls: readonly DemoCall[]): DemoInvoiceLine[] {
  const days = CYCLES[provider];
  const inCycle = calls.filter((call) => call.provider === provider && covers(days, call.offset));
  const byCharge = new Map<string, { line: BilledLine; rate: bigint; quantity: number; pico: bigint }>();
  for (const line of billedLines(inCycle)) {
    const times = isDoubled(provider, line.offset) ? 2 : 1;
    const rate = line.billedPico / BigInt(line.quantity);
    const id = [describe(line), rate].join('|');
    const charge = byCharge.get(id) ?? { line, rate, quantity: 0, pico: 0n };
    charge.quantity += line.quantity * times;
    charge.pico += line.billedPico * BigInt(times);
    byCharge.set(id, charge);
  }
  const charges = [...byCharge.values()].map(({ line, rate, quantity, pico }) => ({
    description: describe(line),
    quantity,
    ratePico: rate,
    pico: toCents(pico),
  }));
  charges.sort((one, other) =>
    one.description < other.description ? -1 : one.description > other.description ? 1 : 0,
  );
  const offsets = Array.from({ length: days.last - days.first + 1 }, (_, at) => days.first + at);
  const fees = offsets.map((offset) => webSearchPico(provider, offset));
  const description = provider === 'anthropic' ? 'Web Search Usage' : 'web search tool calls';
  return [...charges, { description, quantity: null, ratePico: null, pico: sum(fees) }];
}

function describe({ provider, model, tokenClass, isBatch, isLong }: BilledLine): string {
  if (provider === 'openai') return openaiLineItem(model, tokenClass, { isLong });
  return `${model} Usage - ${ANTHROPIC_WORDS[tokenClass]}${isBatch ? ' (Batch)' : ''}`;
}
