import { setPlatform } from './platform.js';
import { nodePlatform } from './platformNode.js';

setPlatform(nodePlatform);

export * from './api.js';
