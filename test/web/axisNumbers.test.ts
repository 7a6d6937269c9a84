import { expect, it } from 'vitest';
import { compact } from '../../web/src/app/format.js';

it.each([
  [
    [0, 0.035, 0.07, 0.105, 0.14],
    ['0', '0.035', '0.07', '0.105', '0.14'],
  ],
  [
    [0, 0.75, 1.5, 2.25, 3],
    ['0', '0.75', '1.5', '2.25', '3'],
  ],
  [
    [0, 150, 300, 450, 600],
    ['0', '150', '300', '450', '600'],
  ],
  [
    [-1_500, 0, 1_500, 2_000_000],
    ['-1.5K', '0', '1.5K', '2M'],
  ],
])('the marks %j of an axis have labels of their own', (marks, labels) => {
  expect(marks.map(compact)).toEqual(labels);
});
