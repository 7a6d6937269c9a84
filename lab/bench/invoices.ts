/**
 * bench:invoices — measures how many generated invoices are read as printed, and checks that no wrong total is
 * accepted. docs/benchmarks.md explains the measurement and the figures.
 */
import { parseArgs } from 'node:util';
import {
  INVOICE_GENERATORS,
  INVOICE_KINDS,
  type InvoiceGenerator,
  type InvoiceKindName,
  type JudgedSet,
  judgeInvoices,
} from '../invoices/judge.js';
import { failureText, judgedTable, missedTargets, supplierTable } from '../invoices/report.js';

function chosen<T extends string>(flag: string, text: string, known: Record<T, unknown>): T[] {
  const names = text.split(',');
  const foreign = names.find((name) => !(name in known));
  if (foreign !== undefined)
    throw new Error(`--${flag} takes ${Object.keys(known).join(', ')}, not ${foreign}`);
  return names as T[];
}

function whole(flag: string, text: string): number {
  if (!/^\d+$/.test(text)) throw new Error(`--${flag} takes a whole number`);
  return Number(text);
}

function readOptions() {
  const { values } = parseArgs({
    options: {
      seeds: { type: 'string', default: '1' },
      generator: { type: 'string', default: Object.keys(INVOICE_GENERATORS).join(',') },
      kinds: { type: 'string', default: Object.keys(INVOICE_KINDS).join(',') },
      /** Number of documents for each seed. */
      count: { type: 'string', default: '80' },
      'scan-count': { type: 'string', default: '24' },
      'show-failures': { type: 'boolean', default: false },
      'no-gate': { type: 'boolean', default: false },
    },
  });
  return {
    seeds: values.seeds.split(',').map((seed) => whole('seeds', seed)),
    generators: chosen<InvoiceGenerator>('generator', values.generator, INVOICE_GENERATORS),
    kinds: chosen<InvoiceKindName>('kinds', values.kinds, INVOICE_KINDS),
    count: whole('count', values.count),
    scanCount: whole('scan-count', values['scan-count']),
    showsFailures: values['show-failures'],
    isGate: !values['no-gate'],
  };
}

function optionsOrEnd() {
  try {
    return readOptions();
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(2);
  }
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

async function judgeAll(): Promise<void> {
  const sets: JudgedSet[] = [];
  for (const generator of options.generators)
    for (const kind of options.kinds) {
      const count = kind === 'digital' ? options.count : options.scanCount;
      const set = await judgeInvoices({
        generator,
        kind,
        seeds: options.seeds,
        count,
        onInvoice: (invoice) => {
          const text = options.showsFailures ? failureText(invoice) : '';
          if (text) print(text);
        },
      });
      sets.push(set);
    }
  print(`seeds ${options.seeds.join(', ')}\n\n${judgedTable(sets)}\n\n${supplierTable(sets)}`);
  const missed = missedTargets(sets);
  print(missed.length === 0 ? '\nevery target is met' : `\nmissed:\n${missed.join('\n')}`);
  if (missed.length > 0 && options.isGate) process.exitCode = 1;
}

// It has separate servers and flags, and ends the process.
if (process.argv.includes('--speed')) await import('./invoiceSpeed.js');
const options = optionsOrEnd();
await judgeAll();
