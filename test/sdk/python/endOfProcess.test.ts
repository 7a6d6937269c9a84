import { findPython } from '../../support/python.js';
import { describeEndOfProcess } from './cases/endOfProcess.js';

// The slow suite has every way, with each interpreter.
describeEndOfProcess('this interpreter', findPython, ['os', 'fork', 'pool']);
