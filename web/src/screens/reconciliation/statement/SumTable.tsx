import { Link } from 'wouter';
import { providerName } from '../../../app/providers';
import { type Column, DataTable } from '../../../parts/DataTable';
import { exactSum, footedCents } from '../../../parts/exactSum';
import { Money } from '../../../parts/Money';
import { Card, Chip } from '../../../parts/Page';
import type { Figures, Line, Statement, Sum } from './lines';
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
          ...columnsOf(statement, { ...sum, lines }),
        ]}
      />
    </Card>
  );
}

/**
 * A column of each provider and of all. The lines of a sum are in cents that add up to its result, and to the total beside
 * them where that can be rounded so; the result of another sum has the cents that it has there.
 */
export function columnsOf(statement: Statement, sum?: Sum): Column<Line>[] {
  const isProvisional = statement.status === 'provisional';
  const lines = sum?.lines ?? [];
  const centsOf = (figures: Figures, across: readonly string[] = []) =>
    footedCents(
      lines.map(({ value }) => value(figures)),
      lines.map(({ value, isResult }, at) => (isResult ? footedCents([value(figures)])[0] : across[at])),
    );
  const cents = statement.providers.map((one) => centsOf(one));
  const across = lines.map((_, at) => exactSum(cents.map((column) => column[at] ?? 0)));
  const column = (id: string, head: string, figures: Figures, shown: readonly string[]): Column<Line> => ({
    id,
    head,
    isNumber: true,
    cell: (line) => <Money usd={line.value(figures)} shown={shown[lines.indexOf(line)]} />,
    foot: sum && <Money usd={sum.total(figures)} isProvisional={isProvisional} />,
  });
  return [
    ...statement.providers.map((one, at) =>
      column(one.provider, providerName(one.provider), one, cents[at] ?? []),
    ),
    column('total', 'Total', statement.total, centsOf(statement.total, across)),
  ];
}

export function Name({ line, period }: { line: Line; period: string }) {
  return (
    <span className={css.name}>
      {line.href ? <Link href={line.href(period)}>{line.name}</Link> : line.name}
      {line.help && <span className={css.muted}>{line.help}</span>}
    </span>
  );
}

const isEqual = (one: string, other: string | number) => exactSum([one]) === exactSum([other]);
