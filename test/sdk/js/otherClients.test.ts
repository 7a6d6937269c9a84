import { repositoryClients } from './cases/officialClients.js';
import { testOtherClients } from './cases/otherClients.js';

testOtherClients('of the repository', repositoryClients);
