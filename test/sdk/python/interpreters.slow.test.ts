import { allPythons } from '../../support/python.js';
import { describeEndOfProcess } from './cases/endOfProcess.js';
import { describeUnits } from './cases/units.js';

for (const { version, path } of allPythons()) {
  describeUnits(version, () => path);
  describeEndOfProcess(version, () => path);
}
