import { findPython } from '../../support/python.js';
import { describeUnits } from './cases/units.js';

describeUnits('this interpreter', findPython);
