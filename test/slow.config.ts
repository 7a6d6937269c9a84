import { defineConfig } from 'vitest/config';
import { suiteConfig } from './support/suite.js';

/** `npm run test:slow`: faults, backups, recorded clients and acceptance by large data. */
export default defineConfig(suiteConfig('slow'));
