import { testMainClients } from './cases/mainClients.js';
import { repositoryClients } from './cases/officialClients.js';

testMainClients('of the repository', repositoryClients);
