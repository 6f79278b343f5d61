// Workload generator: fixed seed, no library distributions, so every machine makes the same bytes.
// usage: gen OUTDIR [N=1000000] [SPAN_S=600] [SEED=20251009]
// Change against the original: only the .jsonl forms are written.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>
#include <algorithm>
#include <unordered_set>
#include <cmath>
using u64 = uint64_t;
struct Rng { u64 s; explicit Rng(u64 x):s(x){} u64 next(){ u64 z=(s+=0x9E3779B97F4A7C15ull); z=(z^(z>>30))*0xBF58476D1CE4E5B9ull; z=(z^(z>>27))*0x94D049BB133111EBull; return z^(z>>31);} 
  u64 below(u64 n){ return (u64)(((unsigned __int128)next()*n)>>64);} double u(){ return (next()>>11)*0x1.0p-53; } };
static const int NN=10000, NJ=200, NK=40;
// rank order = Zipf(s=1) frequency order; gauges carry a per-node baseline
static const char* KINDS[NK]={"gpu.temp","gpu.power","gpu.util","nic.rx_gbps","nccl.op_slow","ecc.sbe","pcie.replay","hbm.temp","kernel.warn",
 "gpu.clock","nic.crc_error","fs.slow_io","nvlink.crc","cpu.throttle","mem.ce","nic.retrans","gpu.xid","gpu.throttle","nccl.timeout","nic.link_down",
 "nic.link_up","job.ckpt_begin","job.ckpt_end","job.step_slow","ecc.dbe","ib.symbol_err","ib.port_flap","nvme.smart","psu.volt","fan.rpm","oom.kill","proc.exit",
 "node.reboot","node.drain","switch.congest","pfc.pause","dns.fail","ntp.skew","gpu.fell_off","hang.detect"};
static const int GAUGES[8]={0,1,2,3,7,9,28,29};
struct Ev{ uint32_t t; uint32_t node; uint16_t kind; uint16_t code; uint16_t q; uint8_t sev, gpu; uint32_t arr; uint32_t job; uint32_t serial; }; // value=q/4
int main(int argc,char**argv){
  std::string out=argc>1?argv[1]:"."; u64 N=argc>2?strtoull(argv[2],0,10):1000000; u64 SPAN=(argc>3?strtoull(argv[3],0,10):600)*1000; u64 seed=argc>4?strtoull(argv[4],0,10):20251009;
  Rng r(seed); std::vector<double> cum(NK); double s=0; for(int i=0;i<NK;i++){ s+=1.0/(i+1); cum[i]=s; } for(auto&c:cum)c/=s;
  bool isg[NK]={}; for(int g:GAUGES) isg[g]=true;
  std::vector<uint16_t> base(NN*NK); for(auto&b:base) b=160+r.below(160); // 40..80
  std::vector<std::unordered_set<uint32_t>> used(NN);
  std::vector<Ev> ev; ev.reserve(N);
  auto put=[&](uint32_t t,uint32_t node,int kind,int code,int q,int sev){ while(!used[node].insert(t).second) t++; // (node,ts) unique: order within a node is strict
    Ev e{t,node,(uint16_t)kind,(uint16_t)code,(uint16_t)q,(uint8_t)sev,(uint8_t)r.below(8),0,node/50,0}; 
    e.arr=t+(r.below(10)==0? r.below(1990): r.below(100)); ev.push_back(e); };
  auto K=[&](const char*n){ for(int i=0;i<NK;i++) if(std::string(n)==KINDS[i]) return i; abort(); };
  // ---- injected instances: codes 900..904 never occur in the background
  std::vector<uint32_t> perm(NN); for(int i=0;i<NN;i++)perm[i]=i; for(int i=NN-1;i>0;i--) std::swap(perm[i],perm[r.below(i+1)]); size_t pn=0; auto nn=[&]{ return perm[pn++]; };
  auto t0=[&]{ return (uint32_t)(5000+r.below(SPAN-85000)); };
  int inj[5]={};
  for(int i=0;i<1500;i++){ int c=i%3; uint32_t n=r.below(NN); put(t0(),n,K("gpu.xid"),900, c==1?200:320, c==2?3:5); if(c==0)inj[0]++; }        // a: 500 hits, 1000 near misses (value, severity)
  for(int i=0;i<1000;i++){ uint32_t n=nn(),t=t0(); int m=i<500?5:(i<750?4:5); int step=i<750?10000:15100; for(int j=0;j<m;j++) put(t+j*step,n,K("ecc.sbe"),901,40,4); if(i<500)inj[1]++; }
  for(int i=0;i<1000;i++){ uint32_t n=nn(),t=t0(); int gap=i<500?1000+(int)r.below(28000):(i<750?31000+(int)r.below(14000):1000); bool rev=i>=750; put(t,n,K(rev?"nccl.timeout":"nic.link_down"),902,0,4); put(t+gap,n,K(rev?"nic.link_down":"nccl.timeout"),902,0,4); if(i<500)inj[2]++; }
  for(int i=0;i<1100;i++){ uint32_t n=nn(),t=t0(); put(t,n,K("job.ckpt_begin"),903,0,4); if(i>=500) put(t+(i<1000?1000+(int)r.below(28000):31000+(int)r.below(9000)),n,K("job.ckpt_end"),903,0,4); if(i<500||i>=1000)inj[3]++; }
  for(int i=0;i<500;i++){ uint32_t n=nn(),t=t0(); int b=base[n*NK+K("hbm.temp")]; for(int j=0;j<6;j++) put(t+j*2000,n,K("hbm.temp"),904,b,1); put(t+12500,n,K("hbm.temp"),904,b*3,5); inj[4]++; }
  // ---- background
  while(ev.size()<N){ int k=std::lower_bound(cum.begin(),cum.end(),r.u())-cum.begin(); if(k>=NK)k=NK-1; uint32_t n=r.below(NN); int q; 
    if(isg[k]){ int b=base[n*NK+k]; q=b*(900+(int)r.below(201))/1000; if(k!=7 && r.below(200)==0) q=q*(3+r.below(6))/2; } else q=r.below(401);
    int sv=r.below(100); int sev= sv<40?0: sv<65?1: sv<80?2: sv<90?3: sv<96?4: sv<99?5:6; 
    put((uint32_t)r.below(SPAN),n,k,(int)r.below(64),q,sev); }
  std::stable_sort(ev.begin(),ev.end(),[](const Ev&a,const Ev&b){ return a.arr<b.arr; });
  const u64 T0=1760000000000ull; static const char* TXT[4]={"counter moved past its soft limit on device","driver reported a state change, see dmesg for details","peer did not answer in time, retrying on next port","sample taken by the node agent"};
  u64 mx=0,late=0; for(auto&e:ev){ if(e.t>mx)mx=e.t; else late=std::max<u64>(late,mx-e.t); }
  auto dump=[&](const char*sfx){ 
    FILE*j=fopen((out+"/events"+sfx+".jsonl").c_str(),"w"); if(!j){ perror("events.jsonl"); exit(1); }
    static char jb[1<<20]; setvbuf(j,jb,_IOFBF,sizeof jb);
    for(auto&e:ev){ u64 ts=T0+e.t; char v[16]; snprintf(v,16,"%d.%02d",e.q/4,(e.q%4)*25); const char*m=TXT[(e.kind+e.code)&3];
      fprintf(j,"{\"ts\":%llu,\"node\":\"node-%05u\",\"job\":\"job-%03u\",\"gpu\":%d,\"kind\":\"%s\",\"code\":%d,\"value\":%s,\"severity\":%d,\"msg\":\"%s: %s\"}\n",(unsigned long long)ts,e.node,e.job,e.gpu,KINDS[e.kind],e.code,v,e.sev,KINDS[e.kind],m); }
    if(fclose(j)){ perror("events.jsonl"); exit(1); } };
  dump(""); std::sort(ev.begin(),ev.end(),[](const Ev&a,const Ev&b){ return a.t!=b.t? a.t<b.t: a.node<b.node; }); dump("_sorted");
  printf("events %zu span_ms %llu max_late_ms %llu injected a=%d b=%d c=%d d=%d e=%d\n",ev.size(),(unsigned long long)SPAN,(unsigned long long)late,inj[0],inj[1],inj[2],inj[3],inj[4]);
  int kc[NK]={}; for(auto&e:ev)kc[e.kind]++; for(int i=0;i<NK;i++) printf("%s:%d ",KINDS[i],kc[i]); puts("");
}
