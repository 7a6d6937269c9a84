import type { OrgDb, SqlValue } from '../../../db/orgDb.js';

interface PlanNode {
  'Actual Rows': number;
  'Actual Loops': number;
  'Rows Removed by Filter'?: number;
  'Rows Removed by Join Filter'?: number;
  'Rows Removed by Index Recheck'?: number;
  Plans?: PlanNode[];
}

/** Rows that the steps of a plan produced or looked at in vain, each as often as it did. */
function rowsTouched(node: PlanNode): number {
  const own =
    node['Actual Rows'] +
    (node['Rows Removed by Filter'] ?? 0) +
    (node['Rows Removed by Join Filter'] ?? 0) +
    (node['Rows Removed by Index Recheck'] ?? 0);
  return (node.Plans ?? []).reduce((sum, plan) => sum + rowsTouched(plan), own * node['Actual Loops']);
}

/** Rows and pages that a read's statements touch: unlike time, independent of the machine's load. */
export interface Touched {
  rows: number;
  statements: { rows: number; sql: string }[];
}

/** Runs a read and sums what each of its statements touches, by EXPLAIN ANALYZE. */
export async function explainRead(orgDb: OrgDb, read: (orgDb: OrgDb) => Promise<unknown>): Promise<Touched> {
  const touched: Touched = { rows: 0, statements: [] };
  await read(watched(orgDb, touched));
  touched.statements.sort((a, b) => b.rows - a.rows);
  return touched;
}

/** The same handle; every statement that it reads with is explained first. */
function watched(orgDb: OrgDb, touched: Touched): OrgDb {
  const explain = async (sql: string, values: readonly SqlValue[]) => {
    const [row] = await orgDb.rows<{ 'QUERY PLAN': { Plan: PlanNode }[] }>(
      `explain (analyze, costs off, timing off, format json) ${sql}`,
      values,
    );
    const rows = rowsTouched(row?.['QUERY PLAN'][0]?.Plan as PlanNode);
    touched.rows += rows;
    touched.statements.push({ rows, sql: sql.replaceAll(/\s+/g, ' ').slice(0, 160) });
  };
  return new Proxy(orgDb, {
    get(target, name) {
      if (name === 'rows' || name === 'copyRows')
        return async (sql: string, values: readonly SqlValue[] = []) => {
          await explain(sql, values);
          return target[name](sql, values);
        };
      if (name === 'transaction')
        return (work: (inside: OrgDb) => Promise<unknown>, ...isolation: never[]) =>
          target.transaction((inside) => work(watched(inside, touched)), ...isolation);
      const value = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
