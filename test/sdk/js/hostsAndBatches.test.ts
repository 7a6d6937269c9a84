import { testHostsAndBatches } from './cases/hostsAndBatches.js';
import { repositoryClients } from './cases/officialClients.js';

testHostsAndBatches('of the repository', repositoryClients);
