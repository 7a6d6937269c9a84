import type { BilledAdjustment } from '../../../db/billing/periods.js';
import { STATEMENT_LINES } from '../../../domain/reconciliation/statement/statement.js';
import {
  invoiceTotalOf,
  type StatementFigures,
} from '../../../domain/reconciliation/statement/statementFigures.js';
import type { MonthStatement } from '../../../usecases/reconciliation/monthStatement.js';
import { type CsvCell, csvShare, csvUsd, writeCsv } from '../../csv.js';

const CSV_HEADER = [
  'period',
  'status',
  'provider',
  'account',
  'section',
  'line',
  'kind',
  'amount_usd',
  'share',
];
/** Value of the columns provider and account in a sum over them. */
const ALL = '(all)';

/**
 * Writes one row for each line of each account, then of each provider, then of the whole; then the unpriced usage by
 * label, and the days without a bill. The items of a section sum to its footing; each share is relative to that
 * footing.
 */
export function writeStatementCsv(statement: MonthStatement): string {
  const row = (provider: string, account: string, ...cells: CsvCell[]): CsvCell[] => [
    statement.period,
    statement.status,
    provider,
    account,
    ...cells,
  ];
  const rowsOf = (provider: string, account: string, figures: StatementFigures): CsvCell[][] =>
    STATEMENT_LINES.map((line) => {
      const amount = line.amount(figures);
      const whole = line.section === 'invoice' ? invoiceTotalOf(figures) : figures.billed.usage;
      const share = csvShare(amount, whole);
      return row(provider, account, line.section, line.name, line.kind, csvUsd(amount), share);
    });
  const adjustmentRows = (section: string, adjustments: readonly BilledAdjustment[]): CsvCell[][] =>
    adjustments.map(({ provider, accountId, day, chargeCategory, bookedOn, amountPico }) => {
      const name = `${chargeCategory} of ${day} booked on ${bookedOn}`;
      return row(provider, accountId, section, name, 'memo', csvUsd(amountPico), null);
    });
  return writeCsv(CSV_HEADER, [
    ...statement.accounts.flatMap((one) => rowsOf(one.provider, one.accountId, one)),
    ...statement.providers.flatMap((one) => rowsOf(one.provider, ALL, one)),
    ...(statement.accounts.length === 0 ? [] : rowsOf(ALL, ALL, statement.total)),
    ...statement.notPriced.map((one) =>
      row(
        one.provider,
        one.accountId,
        'not_priced',
        `${one.label} / ${one.tokenClass} (${one.reason})`,
        'memo',
        csvUsd(one.billedPico),
        csvShare(one.billedPico, statement.total.billed.usage),
      ),
    ),
    ...adjustmentRows('adjustments_since_closing', statement.closing?.adjustments ?? []),
    ...adjustmentRows('adjustments_of_earlier_months', statement.bookedAdjustments),
    ...statement.missing.map((one) =>
      row(
        one.provider,
        one.accountId,
        'coverage',
        `no bill from ${one.firstDay} to ${one.lastDay}`,
        'memo',
        null,
        null,
      ),
    ),
  ]);
}
