import { repositoryClients } from './cases/officialClients.js';
import { testWaysOfReading } from './cases/waysOfReading.js';

testWaysOfReading('as the repository has them', repositoryClients);
