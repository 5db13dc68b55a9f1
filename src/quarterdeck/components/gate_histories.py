"""The history of each feature gate of Kubernetes and etcd: a table, which ``feature_gates`` reads. Data only.

A line has the stage of a gate in the oldest version, and later changes, each with its version. ``from``: the first
version whose programs know the gate, where that is not the version of its first stage. ``gone``: the first one whose
programs do not know it any more. ``locked``: it cannot be set to the other value.

Upstream: ``test/compatibility_lifecycle/reference/versioned_feature_list.yaml`` of Kubernetes 1.33.13, 1.34.4, 1.35.4,
1.36.3 and 1.37.2 (before 1.36 it names two gates by their constants); ``features/known_features.go`` of client-go in
these versions; ``features/etcd_features.go`` of etcd 3.6.16 and 3.7.3.
"""

from __future__ import annotations

#: From Kubernetes 1.33 on.
KUBERNETES = """\
APIResponseCompression: beta on
APIServerIdentity: beta on
APIServerTracing: beta on, 1.34 GA on locked, 1.37 gone
APIServerWebhookAuthenticationToken: 1.37 alpha off
APIServingWithRoutine: alpha off
AggregatedDiscoveryRemoveBetaType: deprecated on, 1.35 deprecated on locked
AllowDNSOnlyNodeCSR: deprecated off
AllowInsecureKubeletCertificateSigningRequests: deprecated off
AllowOverwriteTerminationGracePeriodSeconds: deprecated off, 1.35 deprecated off locked
AllowParsingUserUIDFromCertAuth: beta on
AllowServiceExternalIPs: from 1.36, GA on
AllowServiceLBStatusOnNonLB: deprecated off locked, 1.35 gone
AllowUnsafeMalformedObjectDeletion: alpha off, 1.37 beta on
AnonymousAuthConfigurableEndpoints: beta on, 1.34 GA on locked, 1.37 gone
AnyVolumeDataSource: GA on locked, 1.37 gone
AtomicFIFO: 1.36 beta on
AtomicWriteVolumeUserFields: 1.37 alpha off
AuthorizeNodeWithSelectors: beta on, 1.34 GA on locked, 1.37 gone
AuthorizePodWebsocketUpgradeCreatePermission: 1.35 beta on
AuthorizeWithSelectors: beta on, 1.34 GA on locked, 1.37 gone
BtreeWatchCache: GA on locked, 1.37 gone
CBORServingAndStorage: alpha off
CPUManagerPolicyAlphaOptions: alpha off
CPUManagerPolicyBetaOptions: beta on
CPUManagerPolicyOptions: GA on locked
CRDObservedGenerationTracking: 1.35 beta off, 1.36 beta on
CRDValidationRatcheting: GA on locked
CRIListStreaming: 1.36 alpha off
CSIMigrationPortworx: GA on locked, 1.36 gone
CSIServiceAccountTokenSecrets: 1.35 beta on, 1.36 GA on locked
CSIVolumeHealth: alpha off
ChangeContainerStatusOnKubeletRestart: from 1.35, GA on, 1.35 deprecated off
ClearingNominatedNodeNameAfterBinding: 1.34 alpha off, 1.35 beta on
ClientsAllowCARotation: 1.36 beta on
ClientsAllowCBOR: alpha off
ClientsAllowTLSCacheGC: 1.36 beta on
ClientsPreferCBOR: alpha off
CloudControllerManagerWatchBasedRoutesReconciliation: 1.35 alpha off
CloudControllerManagerWebhook: alpha off
ClusterTrustBundle: beta off, 1.37 GA on
ClusterTrustBundleProjection: beta off, 1.37 GA on
ComponentFlagz: alpha off, 1.36 beta on
ComponentSLIs: GA on locked, 1.35 gone
ComponentStatusz: alpha off, 1.36 beta on
CompositePodGroup: 1.37 alpha off
ConcurrentWatchObjectDecode: beta off, 1.37 beta on
ConsistentListFromCache: beta on, 1.34 GA on locked, 1.37 gone
ConsistentListFromCacheSkipTimeoutFallback: 1.37 alpha off
ConstrainedImpersonation: 1.35 alpha off, 1.36 beta on
ContainerCheckpoint: beta on
ContainerRestartRules: 1.34 alpha off, 1.35 beta on
ContainerStopSignals: alpha off
ContextualLogging: beta on
ControllerManagerReleaseLeaderElectionLockOnExit: 1.36 alpha off
CoordinatedLeaderElection: beta off
CronJobsScheduledAnnotation: GA on locked, 1.35 gone
CrossNamespaceVolumeDataSource: alpha off
CustomCPUCFSQuotaPeriod: alpha off, 1.36 GA on
CustomResourceFieldSelectors: GA on locked
DRAAdminAccess: alpha off, 1.34 beta on, 1.36 GA on locked
DRAConsumableCapacity: 1.34 alpha off, 1.36 beta on
DRADerivedAttributes: 1.37 alpha off
DRADeviceBindingConditions: 1.34 alpha off, 1.36 beta on
DRADeviceCompatibilityGroups: 1.37 alpha off
DRADeviceTaintRules: 1.35 alpha off, 1.36 beta off, 1.37 GA on
DRADeviceTaints: alpha off, 1.36 beta on, 1.37 GA on
DRAExtendedResource: 1.34 alpha off, 1.36 beta on, 1.37 GA on locked
DRAFractionalCapacityRange: 1.37 beta off
DRAListTypeAttributes: 1.36 alpha off
DRANodeAllocatableResources: 1.36 alpha off
DRAOptionalNodeOperations: 1.37 alpha off
DRAPartitionableDevices: alpha off, 1.36 beta on
DRAPartitionableDevicesType: 1.37 alpha off
DRAPrioritizedList: alpha off, 1.34 beta on, 1.36 GA on, 1.37 GA on locked
DRAResourceClaimDeviceStatus: beta on, 1.37 GA on locked
DRAResourceClaimGranularStatusAuthorization: 1.36 beta on
DRAResourcePoolStatus: 1.36 alpha off
DRASchedulerFilterTimeout: 1.34 beta on
DRAWorkloadResourceClaims: 1.36 alpha off, 1.37 beta off
DeclarativeValidation: beta on, 1.36 GA on locked
DeclarativeValidationBeta: 1.36 beta on
DeclarativeValidationTakeover: beta off, 1.36 deprecated off, 1.37 deprecated off locked
DefaultPodSysctls: 1.37 alpha off
DeploymentReplicaSetTerminatingReplicas: alpha off, 1.35 beta on
DetectCacheInconsistency: 1.34 beta on
DevicePluginCDIDevices: GA on locked, 1.34 gone
DisableAllocatorDualWrite: beta off, 1.34 GA on, 1.35 GA on locked
DisableCPUQuotaWithExclusiveCPUs: beta on, 1.36 deprecated on, 1.37 deprecated on locked
DisableNodeKubeProxyVersion: deprecated on, 1.36 deprecated on locked
DynamicResourceAllocation: beta off, 1.34 GA on, 1.35 GA on locked
ElasticIndexedJob: GA on locked, 1.34 gone
EmptyDirVolumeMode: 1.37 alpha off
EnvFiles: 1.34 alpha off, 1.35 beta on
EtcdRangeStream: 1.37 beta on
EventedPLEG: alpha off
EvictionRequestAPI: 1.37 alpha off
ExcludeAdmissionWebhookVirtualResources: 1.37 beta on
ExecProbeTimeout: GA on, 1.35 GA on locked
ExtendWebSocketsToKubelet: 1.36 beta on
ExternalServiceAccountTokenSigner: alpha off, 1.34 beta on, 1.36 GA on locked
GRPCContainerProbeTLS: 1.37 alpha off
GangScheduling: 1.35 alpha off, 1.37 gone
GenericWorkload: 1.35 alpha off, 1.37 beta off
GitRepoVolumeDriver: deprecated off, 1.36 deprecated off locked
GracefulNodeShutdown: beta on
GracefulNodeShutdownBasedOnPodPriority: beta on
H2CContainerProbe: 1.37 alpha off
HPAConfigurableTolerance: alpha off, 1.35 beta on, 1.37 GA on locked
HPAGeneration: 1.37 beta on
HPAOptimizedSelectorStore: 1.37 beta on
HPAScaleToZero: alpha off, 1.37 beta on
HonorPVReclaimPolicy: GA on locked, 1.36 gone
HostnameOverride: 1.34 alpha off, 1.35 beta on, 1.37 GA on locked
HugepageAwareEviction: 1.37 beta on
ImageMaximumGCAge: beta on, 1.35 GA on locked
ImageVolume: beta off, 1.35 beta on, 1.36 GA on locked
ImageVolumeWithDigest: from 1.36, 1.35 alpha off
InOrderInformers: beta on, 1.36 GA on locked
InOrderInformersBatchProcess: 1.35 beta on
InPlacePodLevelResourcesVerticalScaling: 1.35 alpha off, 1.36 beta on
InPlacePodVerticalScaling: beta on, 1.35 GA on locked
InPlacePodVerticalScalingAllocatedStatus: deprecated off, 1.36 gone
InPlacePodVerticalScalingExclusiveCPUs: alpha off
InPlacePodVerticalScalingExclusiveMemory: 1.34 alpha off
InPlacePodVerticalScalingInitContainers: 1.36 beta on, 1.37 GA on locked
InPlacePodVerticalScalingMemoryBackedVolumes: 1.37 alpha off
InPlacePodVerticalScalingSchedulerPreemption: 1.37 alpha off
InTreePluginPortworxUnregister: alpha off, 1.36 gone
InformerResourceVersion: alpha off, 1.35 GA on
InterPodAffinityHostnameFastPath: 1.37 alpha off
JobBackoffLimitPerIndex: GA on locked, 1.37 gone
JobManagedBy: beta on, 1.35 GA on locked
JobPodReplacementPolicy: beta on, 1.34 GA on locked, 1.37 gone
JobSuccessPolicy: GA on locked, 1.37 gone
KMSv1: deprecated off
KubeProxyIPVS: from 1.37, GA on, 1.37 deprecated on
KubeProxyNFTablesLocalhostNodePorts: 1.37 alpha off
KubeletAllocatedPodsEndpoint: 1.37 alpha off
KubeletCgroupDriverFromCRI: beta on, 1.34 GA on locked
KubeletCrashLoopBackOffMax: alpha off, 1.35 beta on
KubeletEnsureSecretPulledImages: alpha off, 1.35 beta on
KubeletFineGrainedAuthz: beta on, 1.36 GA on locked
KubeletInUserNamespace: alpha off, 1.37 beta on
KubeletPSI: alpha off, 1.34 beta on, 1.36 GA on locked
KubeletPodResourcesDynamicResources: alpha off, 1.34 beta on, 1.36 GA on locked
KubeletPodResourcesGet: alpha off, 1.34 beta on, 1.36 GA on locked
KubeletPodResourcesListUseActivePods: from 1.34, GA off, 1.34 deprecated on
KubeletRegistrationGetOnExistsOnly: deprecated off
KubeletSeparateDiskGC: beta on
KubeletServiceAccountTokenForCredentialProviders: alpha off, 1.34 beta on
KubeletTracing: beta on, 1.34 GA on locked
LegacySidecarContainers: deprecated off, 1.34 gone
ListFromCacheSnapshot: alpha off, 1.34 beta on
LoadBalancerIPMode: GA on locked, 1.35 gone
LocalStorageCapacityIsolationFSQuotaMonitoring: beta off
LogarithmicScaleDown: GA on locked, 1.37 gone
LoggingAlphaOptions: alpha off
LoggingBetaOptions: beta on
ManifestBasedAdmissionControlConfig: 1.36 alpha off, 1.37 beta on
MatchLabelKeysInPodAffinity: GA on locked
MatchLabelKeysInPodTopologySpread: beta on
MatchLabelKeysInPodTopologySpreadSelectorMerge: 1.34 beta on
MaxUnavailableStatefulSet: alpha off, 1.35 beta off, 1.37 beta on
MemoryManager: GA on locked, 1.36 gone
MemoryQoS: alpha off, 1.37 beta on
MultiCIDRServiceAllocator: GA on, 1.34 GA on locked
MutableCSINodeAllocatableCount: alpha off, 1.34 beta off, 1.35 beta on, 1.36 GA on locked
MutablePVNodeAffinity: 1.35 alpha off
MutablePodResourcesForSuspendedJobs: 1.35 alpha off, 1.36 beta on
MutableSchedulingDirectivesForSuspendedJobs: 1.35 alpha off, 1.36 beta on
MutatingAdmissionPolicy: alpha off, 1.34 beta off, 1.36 GA on
NFTablesNetlink: 1.37 beta on
NFTablesProxyMode: GA on locked
NativeHistograms: 1.36 alpha off, 1.37 beta on
NodeControllerLeaseCircuitBreaker: 1.37 beta on
NodeDeclaredFeatures: 1.35 alpha off, 1.36 beta on, 1.37 GA on locked
NodeInclusionPolicyInPodTopologySpread: GA on locked
NodeLifecycleConditions: 1.37 alpha off
NodeLogQuery: beta off, 1.36 GA on locked
NodeSwap: beta on, 1.34 GA on locked
NominatedNodeNameForExpectation: 1.34 alpha off, 1.35 beta on
OpenAPIEnums: beta on
OpportunisticBatching: 1.35 beta on
OrderedNamespaceDeletion: beta on, 1.34 GA on locked, 1.37 gone
PLEGOnDemandRelist: 1.36 beta on, 1.37 GA on locked
PersistentVolumeClaimUnusedSinceTime: 1.36 alpha off, 1.37 beta on
PodAndContainerStatsFromCRI: alpha off, 1.37 beta off
PodCertificateRequest: 1.34 alpha off, 1.35 beta off, 1.37 GA on
PodDeletionCost: beta on
PodDisruptionConditions: GA on locked, 1.34 gone
PodGroupPreemptionPolicy: 1.37 alpha off
PodIndexLabel: GA on locked, 1.35 gone
PodLevelResourceManagers: 1.36 alpha off, 1.37 beta off
PodLevelResources: alpha off, 1.34 beta on
PodLevelResourcesFixDefaulting: 1.37 beta on
PodLevelResourcesFixKubeletQOSClass: 1.37 beta on
PodLifecycleSleepAction: beta on, 1.34 GA on locked, 1.37 gone
PodLifecycleSleepActionAllowZero: beta on, 1.34 GA on locked, 1.37 gone
PodLogsQuerySplitStreams: alpha off
PodObservedGenerationTracking: alpha off, 1.34 beta on, 1.35 GA on locked
PodReadyToStartContainersCondition: beta on, 1.37 GA on locked
PodSchedulingReadiness: GA on locked
PodTopologyLabelsAdmission: alpha off, 1.35 beta on
PodsAPI: 1.36 alpha off, 1.37 beta on
PortForwardWebsockets: beta on
PreferSameTrafficDistribution: alpha off, 1.34 beta on, 1.35 GA on locked
PreventStaticPodAPIReferences: 1.34 beta on, 1.37 gone
ProbeHostPodSecurityStandards: 1.34 GA on locked, 1.35 gone
ProcMountType: beta on, 1.36 GA on locked
QOSReserved: alpha off
RecoverVolumeExpansionFailure: beta on, 1.34 GA on locked
RecursiveReadOnlyMounts: GA on locked
ReduceDefaultCrashLoopBackOffDecay: alpha off
RelaxedDNSSearchValidation: beta on, 1.34 GA on locked, 1.37 gone
RelaxedEnvironmentVariableValidation: beta on, 1.34 GA on locked
RelaxedServiceNameValidation: 1.34 alpha off, 1.36 beta on, 1.37 GA on locked
ReloadKubeletClientCAFile: 1.36 beta on
ReloadKubeletServerCertificateFile: beta on
RemoteRequestHeaderUID: beta on
ResilientWatchCacheInitialization: beta on, 1.34 GA on locked, 1.37 gone
ResourceHealthStatus: alpha off, 1.36 beta on
ResourceHealthStatusMessage: 1.36 beta on
RestartAllContainersOnContainerExits: 1.35 alpha off, 1.36 beta on
RetryGenerateName: GA on locked, 1.37 gone
RotateKubeletServerCertificate: beta on
RuntimeClassInImageCriApi: alpha off
SELinuxChangePolicy: beta on, 1.36 GA on locked
SELinuxMount: beta off, 1.37 GA on
SELinuxMountReadWriteOncePod: beta on, 1.36 GA on locked
SchedulerAsyncAPICalls: 1.34 beta off
SchedulerAsyncPreemption: beta on
SchedulerPopFromBackoffQ: beta on
SchedulerPreQueueingHints: 1.37 alpha off
SchedulerQueueingHints: beta on, 1.34 GA on locked, 1.37 gone
SeparateCacheWatchRPC: deprecated off, 1.36 deprecated off locked
SeparateTaintEvictionController: beta on, 1.34 GA on locked
ServiceAccountNodeAudienceRestriction: beta on
ServiceAccountTokenJTI: GA on locked
ServiceAccountTokenNodeBinding: GA on locked
ServiceAccountTokenNodeBindingValidation: GA on locked
ServiceAccountTokenPodNodeInfo: GA on locked
ServiceCIDRStatusFieldWiping: from 1.36, GA off, 1.36 deprecated on
ServiceTrafficDistribution: GA on locked, 1.36 gone
ShardedListAndWatch: 1.36 alpha off
SidecarContainers: GA on locked, 1.37 gone
SizeBasedListCostEstimate: 1.34 beta on
SizeMemoryBackedVolumes: GA on locked, 1.35 gone
StaleControllerConsistencyDaemonSet: 1.36 beta on
StaleControllerConsistencyHPA: 1.37 beta on
StaleControllerConsistencyJob: 1.36 beta on
StaleControllerConsistencyReplicaSet: 1.36 beta on
StaleControllerConsistencyStatefulSet: 1.36 beta on
StatefulSetAutoDeletePVC: GA on locked, 1.35 gone
StatefulSetRecreateStrategy: 1.37 alpha off
StatefulSetSemanticRevisionComparison: from 1.34, beta on
StatefulSetStartOrdinal: GA on locked, 1.34 gone
StorageCapacityScoring: alpha off, 1.37 beta on
StorageNamespaceIndex: deprecated on
StorageVersionAPI: alpha off
StorageVersionHash: beta on
StorageVersionMigrator: alpha off, 1.35 beta off, 1.37 GA on
StreamingCollectionEncodingToJSON: beta on, 1.34 GA on locked, 1.37 gone
StreamingCollectionEncodingToProtobuf: beta on, 1.34 GA on locked, 1.37 gone
StrictCostEnforcementForVAP: GA on locked, 1.35 gone
StrictCostEnforcementForWebhooks: GA on locked, 1.35 gone
StrictIPCIDRValidation: alpha off, 1.36 beta on
StructuredAuthenticationConfiguration: beta on, 1.34 GA on locked, 1.37 gone
StructuredAuthenticationConfigurationEgressSelector: 1.34 beta on
StructuredAuthenticationConfigurationJWKSMetrics: 1.35 beta on
StructuredAuthorizationConfiguration: GA on locked, 1.36 gone
SupplementalGroupsPolicy: beta on, 1.35 GA on locked
SystemdWatchdog: beta on, 1.35 GA on locked
TaintTolerationComparisonOperators: 1.35 alpha off
TokenRequestServiceAccountUIDValidation: 1.34 beta on
TopologyAwareHints: GA on locked, 1.36 gone
TopologyAwareWorkloadScheduling: 1.36 alpha off
TopologyManagerPolicyAlphaOptions: alpha off
TopologyManagerPolicyBetaOptions: beta on
TopologyManagerPolicyOptions: GA on, 1.36 GA on locked
TranslateStreamCloseWebsocketRequests: beta on
UnauthenticatedHTTP2DOSMitigation: beta on
UnknownVersionInteroperabilityProxy: alpha off, 1.36 beta on
UnlockWhileProcessingFIFO: 1.36 beta on
UserNamespacesHostNetworkSupport: 1.35 alpha off
UserNamespacesPodSecurityStandards: alpha off, 1.35 gone
UserNamespacesSupport: beta on, 1.36 GA on locked
VolumeAttributesClass: beta off, 1.34 GA on, 1.36 GA on locked
VolumeBindMountOptions: 1.37 alpha off
VolumeLimitScaling: 1.35 alpha off, 1.37 beta on
WatchCacheInitializationPostStartHook: beta off, 1.36 beta on, 1.37 GA on locked
WatchFromStorageWithoutResourceVersion: deprecated off locked, 1.36 gone
WatchList: beta off, 1.34 beta on
WatchListClient: beta off, 1.35 beta on
WatchListCompression: 1.37 beta on
WebhookRoundTripLoadBalancing: 1.37 beta on
WinDSR: beta on, 1.34 GA on locked
WinOverlay: beta on, 1.34 GA on locked
WindowsCPUAndMemoryAffinity: alpha off
WindowsGracefulNodeShutdown: alpha off, 1.34 beta on
WindowsHostNetwork: deprecated off
WorkloadAwarePreemption: 1.36 alpha off, 1.37 gone
WorkloadWithJob: 1.36 alpha off
"""
#: etcd has gates since 3.6.
ETCD = """\
CompactHashCheck: alpha off
FastLeaseKeepAlive: 3.7 beta on
InitialCorruptCheck: alpha off
LeaseCheckpoint: alpha off
LeaseCheckpointPersist: alpha off
PriorityRequest: 3.7 alpha off
SetMemberLocalAddr: alpha off
StopGRPCServiceOnDefrag: alpha off
TxnModeWriteWithSharedBuffer: beta on
"""
