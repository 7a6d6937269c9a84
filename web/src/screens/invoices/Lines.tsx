import { count, exactUsd, percent } from '../../app/format';
import { type Column, DataTable } from '../../parts/DataTable';
import { exactSum } from '../../parts/exactSum';
import { Amount } from '../../parts/Money';
import { Chip } from '../../parts/Page';
import css from './Invoice.module.css';
import { CONFIDENCE_LOW, type Invoice, type InvoiceLine, isBilledTwice, MATCH } from './words';

/** The lines of an invoice. The line under the pointer or with the focus is marked on the page. */
export function Lines({
  invoice,
  active,
  onActive,
  onOpen,
}: {
  invoice: Invoice;
  active: number | undefined;
  onActive: (line: InvoiceLine | undefined) => void;
  onOpen: (line: InvoiceLine) => void;
}) {
  const { lines, currency } = invoice;
  const bad = new Map(
    invoice.checks.flatMap(({ line, ok, message }) => (line !== null && !ok ? [[line, message]] : [])),
  );
  const isTwice = isBilledTwice(invoice);
  const billed = lines.flatMap(({ matched_amount }) => matched_amount ?? []);
  const columns: Column<InvoiceLine>[] = [
    { id: 'line', head: 'Line', cell: ({ line }) => line, foot: 'Sum' },
    {
      id: 'description',
      head: 'Description',
      isWide: true,
      foot: `of ${lines.length} ${lines.length === 1 ? 'line' : 'lines'}`,
      cell: (line) => (
        <div className={css.cell}>
          <span>
            {line.description} <Doubt of={line.extracted.description} />
          </span>
          <span className={css.muted}>
            {[
              line.kind === 'usage' ? null : line.kind.replaceAll('_', ' '),
              line.model && !line.description.includes(line.model) ? line.model : null,
              line.token_class?.replaceAll('_', ' '),
              line.observed_tokens === null ? null : `${count(line.observed_tokens)} tokens of your calls`,
            ]
              .filter(Boolean)
              .join(' · ')}
          </span>
          {line.corrected && <Chip kind="accent">Corrected</Chip>}
          {bad.has(line.line) && <span className={css.doubt}>{bad.get(line.line)}</span>}
        </div>
      ),
    },
    {
      id: 'quantity',
      head: 'Quantity × price',
      isNumber: true,
      cell: ({ quantity, unit_price: price, extracted }) => (
        <div className={css.numbers}>
          <span>
            {quantity === null ? '–' : quantity.toLocaleString('en-US', { maximumFractionDigits: 12 })}{' '}
            <Doubt of={extracted.quantity} />
          </span>
          {price !== null && (
            <span className={css.muted}>
              × {exactPrice(price, currency)} <Doubt of={extracted.unit_price} />
            </span>
          )}
        </div>
      ),
    },
    {
      id: 'amount',
      head: 'Amount, confidence',
      isNumber: true,
      cell: (line) => (
        <div className={css.numbers}>
          <Amount value={line.amount} currency={currency} />
          <span className={lowest(line) < CONFIDENCE_LOW ? css.doubt : css.muted} title={confidences(line)}>
            {percent(lowest(line), 0)}
          </span>
        </div>
      ),
      foot: <Amount value={exactSum(lines.map(({ amount }) => amount))} currency={currency} />,
    },
    {
      id: 'bill',
      head: 'On the bill',
      isNumber: true,
      cell: ({ match_status: match, matched_amount: matched, difference }) => (
        <div className={css.numbers}>
          {match === null ? (
            <Chip>Not compared</Chip>
          ) : isTwice && match === 'matched' ? (
            <Chip kind="bad">Billed twice</Chip>
          ) : (
            <Chip kind={MATCH[match].kind}>{MATCH[match].label}</Chip>
          )}
          {matched !== null && (
            <span className={css.muted}>
              <Amount value={matched} currency={invoice.tie_out?.currency ?? currency} />
              {difference !== null && difference !== 0 && (
                <>
                  , differs by <Amount value={difference} currency={invoice.tie_out?.currency ?? currency} />
                </>
              )}
            </span>
          )}
        </div>
      ),
      foot:
        billed.length === 0 ? undefined : (
          <Amount value={exactSum(billed)} currency={invoice.tie_out?.currency ?? currency} />
        ),
    },
  ];
  return (
    <DataTable
      caption="Lines of the invoice"
      csv={`/api/v1/reconciliation/invoices/${invoice.id}?format=csv`}
      columns={invoice.tie_out ? columns : columns.filter(({ id }) => id !== 'bill')}
      rows={lines}
      rowKey={({ line }) => String(line)}
      rowLabel={({ line, description }) => `Open line ${line}: ${description}`}
      selectedKey={active === undefined ? undefined : String(active)}
      onActive={onActive}
      onOpen={onOpen}
    />
  );
}

const exactPrice = (price: number, currency: string | null) =>
  currency === 'USD' || currency === null
    ? exactUsd(price)
    : `${exactUsd(price).replace('$', '')} ${currency}`;

const readFields = ({ extracted }: InvoiceLine) => Object.values(extracted).filter((field) => field !== null);

const lowest = (line: InvoiceLine) => Math.min(...readFields(line).map((field) => field.confidence));

const confidences = ({ extracted }: InvoiceLine) =>
  Object.entries(extracted)
    .flatMap(([name, field]) =>
      field ? [`${name.replaceAll('_', ' ')} ${percent(field.confidence, 0)}`] : [],
    )
    .join(', ');

/** Marks a value that was read with little confidence. */
function Doubt({ of: field }: { of: { confidence: number; text: string } | null }) {
  if (!field || field.confidence >= CONFIDENCE_LOW) return null;
  return (
    <span className={css.doubt} title={`read as “${field.text}”`}>
      {percent(field.confidence, 0)} sure
    </span>
  );
}
