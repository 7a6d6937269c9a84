import { Link } from 'wouter';
import { withQuery } from '../../../app/filters';
import { count } from '../../../app/format';
import { type Column, DataTable } from '../../../parts/DataTable';
import { exactSum } from '../../../parts/exactSum';
import { Money } from '../../../parts/Money';
import { Chip } from '../../../parts/Page';
import { days, LOOKS_LIKE, type RateLine, REASON, rateClass, type UnjudgedLine } from './words';

const key = (line: RateLine) =>
  [
    line.provider_account_id,
    line.model,
    rateClass(line),
    line.is_batch,
    line.first_day,
    line.billed_per_mtok,
  ].join(' ');

const sumOf = (lines: readonly RateLine[], field: 'billed_usd' | 'agreed_usd') => (
  <Money usd={exactSum(lines.map((line) => line[field]))} />
);

function shared(lines: readonly RateLine[], provider?: string): Column<RateLine>[] {
  return [
    {
      id: 'model',
      head: 'Model',
      cell: (line) =>
        provider ? (
          <Link
            href={withQuery('/events', { model: line.model, from: line.first_day, to: line.last_day })}
            title="Observed calls of these days"
          >
            {line.model}
          </Link>
        ) : (
          line.model
        ),
      foot: `Sum of ${count(lines.length)} ${lines.length === 1 ? 'row' : 'rows'}`,
    },
    { id: 'class', head: 'Charge', cell: rateClass },
    { id: 'days', head: 'Days (UTC)', cell: (line) => days(line) },
    { id: 'tokens', head: 'Quantity', isNumber: true, cell: (line) => count(line.tokens) },
    {
      id: 'billedRate',
      head: 'Billed per M',
      isNumber: true,
      cell: (line) => <Money usd={line.billed_per_mtok} isExact />,
    },
    {
      id: 'agreedRate',
      head: 'Agreed per M',
      isNumber: true,
      cell: (line) => <Money usd={line.agreed_per_mtok} isExact />,
    },
    {
      id: 'listRate',
      head: 'List per M',
      isNumber: true,
      cell: (line) => <Money usd={line.list_per_mtok} isExact />,
    },
    {
      id: 'billed',
      head: 'Billed',
      isNumber: true,
      cell: (line) => <Money usd={line.billed_usd} />,
      foot: sumOf(lines, 'billed_usd'),
    },
  ];
}

/** Money first: the columns about quantities and sources come last. */
const ORDER = [
  'model',
  'class',
  'difference',
  'billedRate',
  'agreedRate',
  'looks',
  'days',
  'billed',
  'agreed',
  'tokens',
  'listRate',
  'source',
];

export function DifferentLines({ lines, provider }: { lines: readonly RateLine[]; provider: string }) {
  const columns: Column<RateLine>[] = [
    ...shared(lines, provider),
    {
      id: 'agreed',
      head: 'Agreed',
      isNumber: true,
      cell: (line) => <Money usd={line.agreed_usd} />,
      foot: sumOf(lines, 'agreed_usd'),
    },
    {
      id: 'difference',
      head: 'Difference',
      isNumber: true,
      cell: (line) => <Money usd={line.difference_usd_exact} />,
      foot: <Money usd={exactSum(lines.map((line) => line.difference_usd_exact))} />,
    },
    {
      id: 'looks',
      head: 'Looks like',
      cell: (line) => (
        <>
          {line.looks_like.map((name) => LOOKS_LIKE[name]).join(', ') || '–'}{' '}
          {line.disputed && <Chip kind="warn">price sources differ</Chip>}
        </>
      ),
    },
    { id: 'source', head: 'Price from', cell: (line) => line.price_source.replaceAll('_', ' ') },
  ];
  return (
    <DataTable
      caption="Charges at another than the agreed rate"
      columns={ORDER.flatMap((id) => columns.find((column) => column.id === id) ?? [])}
      rows={lines}
      rowKey={key}
    />
  );
}

export function AgreedLines({ lines }: { lines: readonly RateLine[] }) {
  return <DataTable caption="Charges at the agreed rate" columns={shared(lines)} rows={lines} rowKey={key} />;
}

export function UnjudgedLines({ lines, total }: { lines: readonly UnjudgedLine[]; total: number }) {
  const columns: Column<UnjudgedLine>[] = [
    {
      id: 'label',
      head: 'Line of the bill',
      cell: (line) => line.label,
      isWide: true,
      foot: `Sum of ${count(lines.length)} ${lines.length === 1 ? 'row' : 'rows'}`,
    },
    { id: 'class', head: 'Charge', cell: (line) => line.token_class.replaceAll('_', ' ') },
    { id: 'days', head: 'Days (UTC)', cell: (line) => days(line) },
    { id: 'reason', head: 'Why it is not judged', cell: (line) => REASON[line.reason] },
    {
      id: 'quantity',
      head: 'Quantity',
      isNumber: true,
      cell: (line) => (line.quantity === null ? '–' : count(line.quantity)),
    },
    {
      id: 'billed',
      head: 'Billed',
      isNumber: true,
      cell: (line) => <Money usd={line.billed_usd} />,
      foot: <Money usd={total} />,
    },
  ];
  return (
    <DataTable
      caption="Charges that the bill alone does not prove"
      columns={columns}
      rows={lines}
      rowKey={(line) =>
        [line.provider_account_id, line.label, line.token_class, line.reason, line.first_day].join(' ')
      }
    />
  );
}
