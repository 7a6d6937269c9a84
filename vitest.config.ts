import { defineConfig } from 'vitest/config';
import { suiteConfig } from './test/support/suite.js';

/** `npm test`: the gate of every change. */
export default defineConfig(suiteConfig('gate'));
