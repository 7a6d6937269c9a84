import type { Pico } from '../../../domain/money.js';
import {
  type AuditLine,
  differenceOf,
  perMtok,
  type UnjudgedLine,
} from '../../../domain/reconciliation/audit/audit.js';
import type { AuditReport } from '../../../usecases/reconciliation/billAudit.js';
import { type CsvCell, csvInteger, csvUsd, writeCsv } from '../../csv.js';

const CSV_HEADER = [
  ...['provider', 'account', 'verdict', 'model', 'token_class', 'service_tier', 'batch', 'long_context'],
  ...['region', 'first_day', 'last_day', 'days', 'quantity', 'billed_usd', 'agreed_usd', 'list_usd'],
  ...['difference_usd', 'billed_per_mtok', 'agreed_per_mtok', 'list_per_mtok', 'looks_like'],
  ...['price_source', 'price_agreement'],
];

const word = (value: boolean | null): string => (value === null ? '' : value ? 'yes' : 'no');

/**
 * Writes one row for each line: verdict `differs`, `as_agreed`, or the reason why it cannot be judged. The last row is
 * the sum of all, verdict `total`.
 */
export function writeAuditCsv(report: AuditReport): string {
  const judged = (verdict: string, line: AuditLine): CsvCell[] => [
    ...[report.provider, line.accountId, verdict, line.label, line.tokenClass, line.serviceTier],
    ...[word(line.isBatch), word(line.longContext), line.region, line.firstDay, line.lastDay],
    ...[csvInteger(line.days), csvUsd(line.quantity), csvUsd(line.billedPico), csvUsd(line.agreedPico)],
    ...[csvUsd(line.listPico), csvUsd(differenceOf(line))],
    ...[line.billedPico, line.agreedPico, line.listPico].map((pico) => csvUsd(perMtok(pico, line.quantity))),
    ...[line.looksLike.join(' '), line.priceSource, line.agreement],
  ];
  const unjudged = (line: UnjudgedLine): CsvCell[] => [
    ...[report.provider, line.accountId, line.reason, line.label, line.tokenClass, null, null, null, null],
    ...[line.firstDay, line.lastDay, csvInteger(line.days), csvUsd(line.quantity), csvUsd(line.billedPico)],
    ...Array.from({ length: 9 }, () => null),
  ];
  const sum = (verdict: string, billed: Pico, agreed: Pico | null, difference: Pico): CsvCell[] => [
    ...[report.provider, null, verdict, null, null, null, null, null, null],
    ...[report.fromDay, report.toDay, null, null, csvUsd(billed), csvUsd(agreed), null, csvUsd(difference)],
    ...Array.from({ length: 6 }, () => null),
  ];
  const { totals, omitted } = report;
  return writeCsv(CSV_HEADER, [
    ...report.differences.map((line) => judged('differs', line)),
    ...(omitted.lines === 0
      ? []
      : [sum('omitted', omitted.billedPico, omitted.agreedPico, omitted.billedPico - omitted.agreedPico)]),
    ...report.asAgreed.map((line) => judged('as_agreed', line)),
    ...report.notJudged.map(unjudged),
    sum('total', totals.billedPico, null, totals.judgedPico - totals.agreedPico),
  ]);
}

/** File name of the CSV. */
export function auditFilename(report: AuditReport): string {
  return `audit-${report.provider}-${report.fromDay ?? 'none'}-${report.toDay ?? 'none'}.csv`;
}
