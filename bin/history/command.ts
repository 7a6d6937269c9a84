import { Command, Option } from 'commander';
import { HISTORY_SOURCES, type HistorySource } from '../../adapters/history/convertRow.js';
import type { Provider } from '../../domain/providers.js';
import { runningServiceOf } from '../service/runningService.js';
import { print, providerOption, type Terminal } from '../terminal/terminal.js';
import { importHistory } from './importHistory.js';
import { type ImportedBill, importUsage } from './importUsage.js';
import type { Progress, Reason } from './progress.js';

const FROM = [...HISTORY_SOURCES, 'openai'] as const;

interface HistoryOptions {
  from: HistorySource | 'openai';
  provider?: Provider;
  account?: string;
}

/** Sends an export of another product to a running service. Exit code 1: some rows need a look. */
export function historyCommand(terminal: Terminal): Command {
  return new Command('history')
    .description('import calls of the past from an export of another product: docs/history.md')
    .argument('<file>', 'the export: CSV, JSON or JSONL, also gzipped')
    .addOption(new Option('--from <product>', 'whose export').choices(FROM).makeOptionMandatory())
    .option('--account <name>', 'account of an export of OpenAI that names none')
    .addOption(providerOption('whose calls, where neither the row nor its model shows it'))
    .action((file: string, options: HistoryOptions) => run(terminal, file, options));
}

async function run(terminal: Terminal, file: string, options: HistoryOptions): Promise<void> {
  const { from, provider, account } = options;
  const config = terminal.readConfig();
  const service = runningServiceOf(config, 'import history');
  if (from === 'openai') {
    const bill = await importUsage(service, file, account);
    print(terminal, usageSummaryOf(bill));
    if (bill.status !== 'succeeded' && bill.status !== 'queued') terminal.exitCode = 1;
    return;
  }
  const progress = await importHistory(service, {
    source: from,
    file,
    provider,
    cacheDir: config.cacheDir,
    now: terminal.now,
  });
  print(terminal, summaryOf(file, progress));
  if (Object.keys(progress.faults).length > 0) terminal.exitCode = 1;
}

function usageSummaryOf({ id, status, rows, period_start, period_end, error }: ImportedBill): string {
  if (status === 'queued') return `${id}: stored; it is read as soon as the worker of the service runs.`;
  if (status !== 'succeeded') return `${id}: ${status}: ${error?.message ?? 'no reason was given'}`;
  return `${id}: ${rows} rows of usage, ${period_start} to ${period_end}. They are sums that OpenAI counted and no calls: recorded calls are compared with them.`;
}

const total = (reasons: Record<string, Reason>) =>
  Object.values(reasons).reduce((sum, { rows }) => sum + rows, 0);

/** The result of every row. */
export function summaryOf(file: string, progress: Progress): string {
  const { rows, stored, repeats, firstTime, lastTime, skipped, faults } = progress;
  const span = firstTime === '' ? '' : `, ${firstTime.slice(0, 10)} to ${lastTime.slice(0, 10)}`;
  const figure = (count: number) => count.toLocaleString('en-US').padStart(12);
  return [
    `${file}: ${rows.toLocaleString('en-US')} rows${span}`,
    `${figure(stored)}  calls stored`,
    `${figure(repeats)}  repeats of stored calls, which change nothing`,
    `${figure(total(skipped))}  rows that are no calls`,
    ...linesOf(skipped),
    `${figure(total(faults))}  rows that cannot be read`,
    ...linesOf(faults),
  ].join('\n');
}

function linesOf(reasons: Record<string, Reason>): string[] {
  return Object.entries(reasons)
    .sort(([, a], [, b]) => b.rows - a.rows)
    .map(([reason, { rows, lines }]) => {
      const more = rows > lines.length && lines.length > 0 ? ', …' : '';
      const where = lines.length === 0 ? '' : ` (line ${lines.join(', ')}${more})`;
      return `${' '.repeat(14)}${rows.toLocaleString('en-US')}  ${reason}${where}`;
    });
}
