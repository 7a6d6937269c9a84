import type { ReactNode } from 'react';
import { count, percent } from '../../app/format';
import { exactSum } from '../../parts/exactSum';
import { Amount } from '../../parts/Money';
import { Card, Chip } from '../../parts/Page';
import css from './Invoice.module.css';
import { CONFIDENCE_LOW, type Invoice, isBilledTwice, MATCH, TIE, TIE_REASON } from './words';

/** The sums as printed, and whether they agree with the lines. */
export function Sums({ invoice }: { invoice: Invoice }) {
  const { fields, currency, checks, arithmetic_ok: isOk } = invoice;
  if (!fields) return null;
  const rows: [string, number | undefined | null, number | undefined][] = [
    ['Subtotal', fields.subtotal?.value, fields.subtotal?.confidence],
    ...fields.discounts.map((one): [string, number, number] => ['Discount', one.value, one.confidence]),
    ...fields.taxes.map((one): [string, number, number] => [
      one.name,
      one.amount.value,
      one.amount.confidence,
    ]),
    ...fields.credits.map((one): [string, number, number] => ['Credit', one.value, one.confidence]),
  ];
  const after: typeof rows = [
    ['Paid', fields.amount_paid?.value, fields.amount_paid?.confidence],
    ['Due', fields.amount_due?.value, fields.amount_due?.confidence],
  ];
  const row = ([name, value, certain]: (typeof rows)[number], at: number, isTotal = false) =>
    value === undefined || value === null ? null : (
      <tr key={`${name} ${at}`} className={isTotal ? css.total : ''}>
        <th scope="row">{name}</th>
        <td>
          <Amount value={value} currency={currency} />
          {certain !== undefined && certain < CONFIDENCE_LOW && (
            <span className={css.doubt}> {percent(certain, 0)} sure</span>
          )}
        </td>
      </tr>
    );
  const whole = checks.filter(({ line }) => line === null);
  const wrong = checks.filter(({ ok }) => !ok);
  return (
    <Card
      title="Sums of the document"
      aside={
        isOk === null ? null : isOk ? (
          <Chip kind="good">✓ All sums agree</Chip>
        ) : (
          <Chip kind="bad">✕ Sums disagree</Chip>
        )
      }
    >
      <table className={css.sums}>
        <caption className="visually-hidden">Sums as printed</caption>
        <tbody>
          <tr>
            <th scope="row">
              Sum of {invoice.lines.length} {invoice.lines.length === 1 ? 'line' : 'lines'}
            </th>
            <td>
              <Amount value={exactSum(invoice.lines.map(({ amount }) => amount))} currency={currency} />
            </td>
          </tr>
          {rows.map((one, at) => row(one, at))}
          {row(['Total', fields.total?.value, fields.total?.confidence], 0, true)}
          {after.map((one, at) => row(one, at))}
        </tbody>
      </table>
      {wrong.length > 0 && <Checks checks={wrong} />}
      <details>
        <summary>
          {count(checks.length - wrong.length)} of {count(checks.length)} checks agree
        </summary>
        <Checks checks={whole.filter(({ ok }) => ok)} />
      </details>
    </Card>
  );
}

function Checks({ checks }: { checks: Invoice['checks'] }) {
  return (
    <ul className={css.checks}>
      {checks.map(({ check, line, ok, message }) => (
        <li key={`${check} ${line} ${message}`}>
          <span style={{ color: ok ? 'var(--good)' : 'var(--bad)' }}>
            {ok ? '✓' : '✕'}
            <span className="visually-hidden">{ok ? ' agrees' : ' disagrees'}</span>
          </span>
          <span>{message}</span>
        </li>
      ))}
    </ul>
  );
}

/** The invoice beside the provider's bill of the same period. */
export function TieOut({ invoice }: { invoice: Invoice }) {
  const { tie_out: tie, currency } = invoice;
  const counts = new Map<string, number>();
  const isTwice = isBilledTwice(invoice);
  for (const { match_status: match } of invoice.lines) {
    const word =
      match && (isTwice && match === 'matched' ? 'billed twice' : MATCH[match].label.toLowerCase());
    if (word) counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  const value = (amount: number | null): ReactNode => (
    <Amount value={amount} currency={tie?.currency ?? currency} />
  );
  if (!tie)
    return (
      <Card title="Compared with the bill" aside={<Chip>Not compared</Chip>}>
        <p>
          {invoice.review_reasons.includes('arithmetic')
            ? 'The invoice is compared once its sums agree, or once you confirm that the document itself is wrong.'
            : 'The comparison with the provider’s bill of the period has not ended yet.'}
        </p>
      </Card>
    );
  return (
    <Card title="Compared with the bill" aside={<Chip kind={TIE[tie.tie].kind}>{TIE[tie.tie].label}</Chip>}>
      {tie.reason && <p>It cannot be compared: {TIE_REASON[tie.reason]}.</p>}
      <table className={css.sums}>
        <caption className="visually-hidden">Invoice and bill</caption>
        <tbody>
          <tr>
            <th scope="row">Invoiced, of charges that a bill can show</th>
            <td>{value(tie.invoiced)}</td>
          </tr>
          <tr>
            <th scope="row">
              {isTwice ? 'Left of the bill of the same period' : 'Billed in the same period'}
            </th>
            <td>{value(tie.billed)}</td>
          </tr>
          <tr className={css.total}>
            <th scope="row">Difference</th>
            <td>{value(tie.difference)}</td>
          </tr>
        </tbody>
      </table>
      {counts.size > 0 && (
        <p className={css.muted}>
          Lines: {[...counts].map(([match, size]) => `${size} ${match}`).join(', ')}.
        </p>
      )}
    </Card>
  );
}
