import { expect, it } from 'vitest';
import { centsInSums, footedTable } from '../../web/src/parts/footedTable.js';

it('the rows of a table of sums add up to their totals too', () => {
  const columns = [
    [5797.38263275, -695.68591593, 123.879666279, 39.37],
    [3230.04677025, 0, 87.786760875, 53.5587398],
  ];
  const totals = [9027.429403, -695.68591593, 211.666427154, 92.9287398];
  const [anthropic, openai, total] = footedTable(columns, totals).map(({ cents }) => cents.map(Number));
  expect(anthropic).toEqual([5797.38, -695.68, 123.88, 39.37]);
  expect(openai).toEqual([3230.05, 0, 87.78, 53.56]);
  expect(total).toEqual([9027.43, -695.68, 211.66, 92.93]);
});

it('a row that is the result of another sum has the cents that it has there', () => {
  const column = [3371.394, 0.003, 0.003, 0.004];
  const centsOf = (isAlone?: boolean[]) =>
    footedTable([column], column, isAlone).map(({ cents }) => Number(cents[0]));
  expect(centsOf()).toEqual([3371.4, 3371.4]);
  expect(centsOf([true])).toEqual([3371.39, 3371.39]);
});

it('an amount beside the sums has the cents that it has in the first sum with it', () => {
  const sums = [
    { amounts: ['87.786760875', 1], cents: ['87.78', '1.00'] },
    { amounts: [87.786760875], cents: ['87.79'] },
  ];
  expect(centsInSums(87.786760875, sums)).toBe('87.78');
  expect(centsInSums('1.0', sums)).toBe('1.00');
  expect(centsInSums(2, sums)).toBeUndefined();
});
