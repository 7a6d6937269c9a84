import { Command, Option } from 'commander';
import { OrgDb } from '../../db/orgDb.js';
import { DomainError } from '../../domain/errors.js';
import { microsFromDate } from '../../domain/period.js';
import type { PriceBook } from '../../domain/pricing/priceBook.js';
import type { Provider } from '../../domain/providers.js';
import { StartError } from '../../platform/startError.js';
import { PriceBookHolder } from '../../usecases/pricing/priceBookHolder.js';
import { chooseOrganization, withToolDatabase } from '../service/toolDatabase.js';
import type { Terminal } from '../terminal/terminal.js';
import { dayOption, organizationOption, providerOption } from '../terminal/terminal.js';

const FORMATS = ['table', 'json', 'csv'] as const;
type Format = (typeof FORMATS)[number];

/** Findings of a command about a provider's bills, in every output format. */
export interface BillReport {
  table: () => string;
  json: () => unknown;
  csv: () => string;
  /** Whether it contains something to act on. */
  asksForAction: boolean;
}

export interface ReportRange {
  provider: Provider;
  fromDay: string | null;
  toDay: string | null;
  nowMicros: bigint;
}

export type MakeReport = (orgDb: OrgDb, range: ReportRange, agreed: PriceBook) => Promise<BillReport>;

interface ReportOptions {
  provider: Provider;
  from?: string;
  to?: string;
  org?: string;
  format: Format;
  json?: boolean;
  failOnDifference?: boolean;
  failOnFinding?: boolean;
}

/**
 * Builds a command that reports on a provider's bills; with `failOption` it exits with code 1 on findings, for scripts.
 */
export function billReportCommand(
  name: string,
  failOption: Option,
  make: MakeReport,
  terminal: Terminal,
): Command {
  return new Command(name)
    .addOption(providerOption('whose bills').makeOptionMandatory())
    .addOption(dayOption('from', 'first UTC day (the first day that is billed)'))
    .addOption(dayOption('to', 'last UTC day (the last day that is billed)'))
    .addOption(organizationOption())
    .addOption(new Option('--format <format>', 'what is printed').choices(FORMATS).default('table'))
    .addOption(new Option('--json', 'the same as --format json').conflicts('format'))
    .addOption(failOption)
    .action(async (options: ReportOptions) => {
      const { provider, from = null, to = null, org, format, json } = options;
      const nowMicros = microsFromDate(terminal.now());
      const range = { provider, fromDay: from, toDay: to, nowMicros };
      const report = await withToolDatabase(terminal.readConfig(), async (database) =>
        readBillReport(new OrgDb(database, await chooseOrganization(database, org)), range, make),
      );
      terminal.output.write(writeReport(report, json ? 'json' : format));
      if (report.asksForAction && (options.failOnDifference || options.failOnFinding)) terminal.exitCode = 1;
    });
}

/**
 * Creates the report by the organization's prices.
 * @throws StartError for an invalid range.
 */
export async function readBillReport(
  orgDb: OrgDb,
  range: ReportRange,
  make: MakeReport,
): Promise<BillReport> {
  const prices = await PriceBookHolder.open(orgDb.database, {
    nowMs: () => performance.now(),
    onFailure: () => undefined,
  });
  const report = await make(orgDb, range, await prices.of(orgDb.orgId)).catch((error: unknown) => {
    throw error instanceof DomainError && error.code === 'invalid_range'
      ? new StartError(`--${error.message}.`)
      : error;
  });
  await prices.settle();
  return report;
}

function writeReport({ table, json, csv }: BillReport, format: Format): string {
  if (format === 'json') return `${JSON.stringify(json(), null, 2)}\n`;
  return format === 'csv' ? csv() : table();
}
