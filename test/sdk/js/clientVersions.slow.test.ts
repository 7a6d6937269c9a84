import { rmSync } from 'node:fs';
import { afterAll } from 'vitest';
import { installPackages } from '../../support/installPackages.js';
import { testHostsAndBatches } from './cases/hostsAndBatches.js';
import { testMainClients } from './cases/mainClients.js';
import { clientsIn, type LoadClients } from './cases/officialClients.js';
import { testOtherClients } from './cases/otherClients.js';
import { testWaysOfReading } from './cases/waysOfReading.js';

/**
 * The tests of the repository's clients, with other versions of them. They are installed into a temporary folder,
 * because as dependencies of the repository they would cost every installation 300 MB.
 */
const VERSIONS: readonly { name: string; packages: Record<string, string> }[] = [
  {
    name: 'of November 2025',
    packages: {
      openai: '6.9.1',
      '@anthropic-ai/sdk': '0.69.0',
      '@google/genai': '1.29.1',
      '@mistralai/mistralai': '1.10.0',
      'cohere-ai': '7.19.0',
      '@aws-sdk/client-bedrock-runtime': '3.938.0',
      '@smithy/node-http-handler': '4.4.5',
    },
  },
  {
    name: 'of November 2026',
    packages: {
      openai: '7.57.0',
      '@anthropic-ai/sdk': '1.13.0',
      '@google/genai': '3.1.0',
      '@mistralai/mistralai': '2.6.2',
      'cohere-ai': '8.1.0',
      '@aws-sdk/client-bedrock-runtime': '3.1164.0',
      '@smithy/node-http-handler': '4.4.5',
    },
  },
];

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

for (const { name, packages } of VERSIONS) {
  let folder: string | undefined;
  const load: LoadClients = () => {
    if (folder === undefined) {
      folder = installPackages(packages);
      folders.push(folder);
    }
    return clientsIn(folder)();
  };
  testMainClients(name, load);
  testOtherClients(name, load);
  testHostsAndBatches(name, load);
  testWaysOfReading(name, load);
}
