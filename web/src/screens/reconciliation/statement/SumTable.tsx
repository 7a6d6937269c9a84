import { Link } from 'wouter';
import { providerName } from '../../../app/providers';
import { type Column, DataTable } from '../../../parts/DataTable';
import { exactSum } from '../../../parts/exactSum';
import { centsInSums, footedTable, isEqual, type ShownAmounts } from '../../../parts/footedTable';
import { Money } from '../../../parts/Money';
import { Card, Chip } from '../../../parts/Page';
import { type Figures, type Line, type Statement, SUMS, type Sum } from './lines';
import css from './Statement.module.css';

/** One sum of the statement by provider and in total. The foot is the API's result; the rows are added to check it. */
export function SumTable({ statement, sum }: { statement: Statement; sum: Sum }) {
  const figures = [...statement.providers, statement.total];
  const lines = sum.lines.filter(
    ({ isRare, value }) => !isRare || figures.some((one) => Number(value(one)) !== 0),
  );
  const doesFoot = figures.every((one) =>
    isEqual(exactSum(lines.map(({ value }) => value(one))), sum.total(one)),
  );
  return (
    <Card
      title={sum.title}
      aside={
        doesFoot ? (
          <Chip kind="good">✓ {lines.length} rows foot</Chip>
        ) : (
          <Chip kind="bad">The rows do not foot</Chip>
        )
      }
    >
      <p className={css.muted}>{sum.lead}</p>
      <DataTable
        caption={sum.title}
        rows={lines}
        rowKey={({ id }) => id}
        columns={[
          {
            id: 'item',
            head: 'Item',
            cell: (line) => <Name line={line} period={statement.period} />,
            foot: `${sum.result} (sum of ${lines.length} rows)`,
          },
          ...sumColumns(statement, { ...sum, lines }),
        ]}
      />
    </Card>
  );
}

/** What each provider shows for the lines of a sum, and all together last. */
function shownOf({ providers, total }: Statement, lines: readonly Line[]): ShownAmounts[] {
  const amountsOf = (figures: Figures) => lines.map(({ value }) => value(figures));
  const isAlone = lines.map(({ isResult }) => isResult === true);
  return footedTable(providers.map(amountsOf), amountsOf(total), isAlone);
}

function sumColumns(statement: Statement, { lines, total }: Sum): Column<Line>[] {
  const shown = shownOf(statement, lines);
  return columnsOf(statement, (line, column) => shown[column]?.cents[lines.indexOf(line)], total);
}

/** The columns beside the sums: an amount that a sum has as well shows the same cents. */
export function memoColumns(statement: Statement): Column<Line>[] {
  const sums = SUMS.map(({ lines }) => shownOf(statement, lines));
  return columnsOf(statement, ({ value }, column, figures) =>
    centsInSums(
      value(figures),
      sums.flatMap((shown) => shown[column] ?? []),
    ),
  );
}

/** A column of each provider and of all; a line whose cents are undefined is rounded by itself. */
function columnsOf(
  statement: Statement,
  centsOf: (line: Line, column: number, figures: Figures) => string | undefined,
  total?: Sum['total'],
): Column<Line>[] {
  const isProvisional = statement.status === 'provisional';
  const all = [
    ...statement.providers.map((one) => ({
      id: one.provider,
      head: providerName(one.provider),
      figures: one,
    })),
    { id: 'total', head: 'Total', figures: statement.total },
  ];
  return all.map(({ id, head, figures }, column) => ({
    id,
    head,
    isNumber: true,
    cell: (line) => <Money usd={line.value(figures)} shown={centsOf(line, column, figures)} />,
    foot: total && <Money usd={total(figures)} isProvisional={isProvisional} />,
  }));
}

export function Name({ line, period }: { line: Line; period: string }) {
  return (
    <span className={css.name}>
      {line.href ? <Link href={line.href(period)}>{line.name}</Link> : line.name}
      {line.help && <span className={css.muted}>{line.help}</span>}
    </span>
  );
}
