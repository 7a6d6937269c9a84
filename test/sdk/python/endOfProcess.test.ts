import { findPython } from '../../support/python.js';
import { describeEndOfProcess } from './cases/endOfProcess.js';

describeEndOfProcess('this interpreter', findPython);
